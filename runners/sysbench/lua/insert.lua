-- An insert in order of the primary key, as text that is not prepared.
local pd = require("pointdrop")

pd.workload(function()
   local rows = sysbench.opt.table_size
   return function()
      pd.query(("INSERT INTO sbtest%u (k, c, pad) VALUES (%u, '%s', '%s')"):format(
         pd.any_table(), sysbench.rand.uniform(1, rows), pd.any_c(), pd.any_pad()))
   end
end)
