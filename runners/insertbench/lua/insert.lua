-- Inserts: in key order, so many rows a transaction, as fast as it goes or at a rate; never far ahead of the deletes.
local ib = require("insertbench")

ib.role(function(client)
   local rows = sysbench.opt.rows_per_commit
   local last = client.value("SELECT COALESCE(MAX(transactionid), 0) FROM pi%u")
   local pace = ib.pace(sysbench.opt.rate, rows)
   local ahead, statement = 0, ""
   return {
      ready = function()
         while client.partner and ahead >= sysbench.opt.ahead do
            local heard = client.partner.hear()
            if heard == 0 then
               error("the deletes ended before the inserts")
            end
            ahead = ahead - heard
         end
         statement = ib.insert_statement(client, last, rows)
         pace()
         return true
      end,
      work = function() client.query(statement) end,
      after = function()
         last = last + rows
         if client.partner then
            ahead = ahead + 1
            client.partner.tell()
         end
      end,
   }
end)
