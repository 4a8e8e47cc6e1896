-- The whole table, none of it returned.
local pd = require("pointdrop")

pd.workload(function()
   local scan = pd.statement("scan", "SELECT * FROM sbtest%u WHERE LENGTH(c) < 0")
   return function()
      pd.reads_rows(sysbench.opt.table_size)
      scan(pd.any_table())
   end
end)
