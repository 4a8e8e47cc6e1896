-- Rows by an in-list of primary keys; with --hot always the same adjacent ones.
local pd = require("pointdrop")

pd.workload(function()
   local size = sysbench.opt.points
   local select_c = pd.list_statement("in-list", "SELECT c FROM sbtest%u WHERE id IN (?)", size)
   return function()
      select_c(pd.any_table(), sysbench.opt.hot and pd.middle_ids(size) or pd.any_ids(size))
   end
end)
