-- The whole table, none of it returned; text, and each thread has a table of its own.
local pd = require("pointdrop")

pd.workload(function()
   local scan = pd.text_statement("scan", "SELECT * FROM sbtest%u WHERE LENGTH(c) < 0")
   local own_table = sysbench.tid % sysbench.opt.tables + 1
   return function()
      pd.reads_rows(sysbench.opt.table_size)
      scan(own_table)
   end
end)
