-- Deletes: the oldest rows, a transaction for every one that the inserts have done, until they are done.
local ib = require("insertbench")

ib.role(function(client)
   local rows = sysbench.opt.rows_per_commit
   local first = client.value("SELECT COALESCE(MIN(transactionid), 1) FROM pi%u")
   local text = ("DELETE FROM pi%u WHERE transactionid >= ? AND transactionid < ?"):format(client.number)
   local delete = client.prepare(text)
   local owed = 0
   return {
      statements = { { "delete", text, { first, first + rows } } },
      ready = function()
         if owed == 0 then
            owed = client.partner.hear()
         end
         return owed > 0
      end,
      work = function()
         delete(first, first + rows)
      end,
      after = function()
         first = first + rows
         owed = owed - 1
         client.partner.tell()
      end,
   }
end)
