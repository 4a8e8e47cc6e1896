-- One aggregate over a range of primary keys.
local pd = require("pointdrop")

pd.workload(function()
   local size = sysbench.opt.range_size
   local count = pd.statement("count", "SELECT COUNT(c) FROM sbtest%u WHERE id BETWEEN ? AND ?", pd.INT, pd.INT)
   return function()
      local first = pd.any_range_start(size)
      count(pd.any_table(), first, first + size - 1)
   end
end)
