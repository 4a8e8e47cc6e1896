-- The reads of read_only and the writes of write_only in one transaction.
local pd = require("pointdrop")

pd.workload(function()
   return pd.transaction(pd.reads(), pd.writes())
end)
