-- A transaction of an indexed update, an update of another column, and a delete with an insert of the same id.
local pd = require("pointdrop")

pd.workload(function()
   return pd.transaction(pd.writes())
end)
