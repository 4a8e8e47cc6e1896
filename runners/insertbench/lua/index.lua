-- Creates the secondary indexes of each client's table.
local ib = require("insertbench")

ib.role(function(client)
   return { ready = function() return true end, work = function() ib.create_indexes(client) end }
end)
