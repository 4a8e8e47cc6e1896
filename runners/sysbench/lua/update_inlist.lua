-- An update of the rows of an in-list.
local pd = require("pointdrop")

pd.workload(function()
   local size = sysbench.opt.points
   local update = pd.list_statement("update-inlist", "UPDATE sbtest%u SET c=? WHERE id IN (?)", size, pd.C)
   return function()
      update(pd.any_table(), pd.any_ids(size))
   end
end)
