-- A transaction of point selects and four kinds of range selects.
local pd = require("pointdrop")

pd.workload(function()
   return pd.transaction(pd.reads())
end)
