-- Queries: ten rows of a range of one of the three secondary indexes, which hold all that is asked for, or one row by its
-- primary key.
local ib = require("insertbench")

local function range_of(columns, any)
   return function(client)
      local first = columns:match("^%w+")
      local text = ("SELECT %s FROM pi%u WHERE %s >= ? ORDER BY %s LIMIT 10"):format(
         columns, client.number, first, columns)
      return { name = first, text = text, any = any, example = { 100 } }
   end
end

local RANGES = {
   range_of("cashregisterid, customerid, price", ib.any_register),
   range_of("productid, customerid, price", ib.any_product),
   range_of("price, dateandtime, customerid", ib.any_price),
}

-- Ids that exist now and are not deleted while the step runs.
local function point(client)
   local last = client.value("SELECT COALESCE(MAX(transactionid), 1) FROM pi%u")
   local first = client.value("SELECT COALESCE(MIN(transactionid), 1) FROM pi%u") + sysbench.opt.deleted
   first = math.min(first, last)
   return {
      name = "point", example = { last },
      text = ("SELECT * FROM pi%u WHERE transactionid = ?"):format(client.number),
      any = function() return sysbench.rand.uniform(first, last) end,
   }
end

ib.role(function(client)
   local queries, statements = {}, {}
   for q, make in ipairs(sysbench.opt.query == "point" and { point } or RANGES) do
      local query = make(client)
      query.run = client.prepare(query.text)
      queries[q], statements[q] = query, { query.name, query.text, query.example }
   end
   return {
      statements = statements,
      ready = function() return true end,
      work = function()
         local query = queries[#queries > 1 and sysbench.rand.uniform(1, #queries) or 1]
         query.run(query.any())
      end,
   }
end)
