-- An insert in order of the primary key, as text that is not prepared.
local pd = require("pointdrop")

pd.workload(function()
   local rows = sysbench.opt.table_size
   -- MySQL and its relatives take an id of 0 for the next one.
   local row = sysbench.sql.driver():name() == "pgsql" and "(k, c, pad) VALUES (?, ?, ?)"
      or "(id, k, c, pad) VALUES (0, ?, ?, ?)"
   local insert = pd.text_statement("insert", "INSERT INTO sbtest%u " .. row, pd.INT, pd.C, pd.PAD)
   return function()
      insert(pd.any_table(), sysbench.rand.uniform(1, rows))
   end
end)
