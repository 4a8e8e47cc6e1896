-- A range on the primary key or the secondary index; with --covered the index holds all that is asked for.
local pd = require("pointdrop")

pd.workload(function()
   local size = sysbench.opt.range_size
   local column = sysbench.opt.on_id and "id" or "k"
   local wanted = sysbench.opt.covered and column or column .. ", c"
   local select_range = pd.statement(
      "range", "SELECT " .. wanted .. " FROM sbtest%u WHERE " .. column .. " BETWEEN ? AND ?", pd.INT, pd.INT)
   return function()
      local first = pd.any_range_start(size)
      select_range(pd.any_table(), first, first + size - 1)
   end
end)
