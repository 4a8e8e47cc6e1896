-- Queries: ten rows of a range of one of the three secondary indexes, which hold all that is asked for, or ten rows by
-- their primary keys.
local ib = require("insertbench")

local ROWS = 10
-- Point queries after which the largest id is asked for again.
local ASK_EVERY = 100

local function range(client, index)
   local hint = ib.postgres() and "" or (" FORCE INDEX (pi%u_%s)"):format(client.number, index.name)
   return {
      name = index.columns:match("^%w+"), example = { 100 },
      text = ("SELECT %s FROM pi%u%s WHERE %s ? ORDER BY %s LIMIT %u"):format(
         index.columns, client.number, hint, index.search, index.columns, ROWS),
      values = function() return ib.any(index.values) end,
   }
end

-- Ids between the smallest, which moves on as the largest does, and the largest when it was last asked for.
local function points(client)
   local function largest() return client.value("SELECT COALESCE(MAX(transactionid), 2) FROM pi%u") end
   local last = largest()
   local behind = last - client.value("SELECT COALESCE(MIN(transactionid), 1) FROM pi%u")
   local example, ids, asked = {}, {}, 0
   for i = 1, ROWS do
      example[i] = last - i
   end
   return {
      name = "point", example = example,
      text = ("SELECT transactionid, productid, data FROM pi%u WHERE transactionid IN (%s?)"):format(
         client.number, ("?, "):rep(ROWS - 1)),
      values = function()
         for i = 1, ROWS do
            ids[i] = last - behind + ib.any(behind)
         end
         return unpack(ids)
      end,
      before = function()
         asked = asked + 1
         if asked % ASK_EVERY == 0 then
            last = largest()
         end
      end,
   }
end

ib.role(function(client)
   local queries, statements = {}, {}
   if sysbench.opt.query == "point" then
      queries[1] = points(client)
   else
      for q, index in ipairs(ib.INDEXES) do
         queries[q] = range(client, index)
      end
   end
   for q, query in ipairs(queries) do
      query.run = client.statement(query.name .. "_query", query.text)
      statements[q] = { query.name, query.text, query.example }
   end
   local query
   return {
      statements = statements,
      ready = function()
         query = queries[#queries > 1 and sysbench.rand.uniform(1, #queries) or 1]
         if query.before then
            query.before()
         end
         return true
      end,
      work = function() query.run(query.values()) end,
   }
end)
