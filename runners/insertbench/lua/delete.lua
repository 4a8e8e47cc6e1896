-- Deletes: the oldest rows, a transaction for every one that the inserts have done, until they are done.
local ib = require("insertbench")

-- Seconds after which the smallest id is asked for again: ids that were never used make the guess lag behind it.
local ASK_EVERY_S = 10

ib.role(function(client)
   local rows = sysbench.opt.rows_per_commit
   local function smallest() return client.value("SELECT COALESCE(MIN(transactionid), 1) FROM pi%u") end
   -- Never larger than the smallest id there is.
   local first, asked_at = smallest(), ib.now()
   local oldest = "transactionid >= ? ORDER BY transactionid ASC LIMIT ?"
   local text = ib.postgres()
         and ("DELETE FROM pi%u WHERE transactionid IN (SELECT transactionid FROM pi%u WHERE %s)"):format(
            client.number, client.number, oldest)
      or ("DELETE FROM pi%u WHERE %s"):format(client.number, oldest)
   local pattern = text:gsub("%?", "%%u")
   local owed = 0
   return {
      statements = { { "delete", text, { first, rows } } },
      ready = function()
         if owed == 0 then
            owed = client.partner.hear()
         end
         if owed > 0 and ib.now() > asked_at + ASK_EVERY_S then
            first, asked_at = smallest(), ib.now()
         end
         return owed > 0
      end,
      work = function()
         client.query(pattern:format(first, rows))
      end,
      after = function()
         first = first + rows
         owed = owed - 1
         client.partner.tell()
      end,
   }
end)
