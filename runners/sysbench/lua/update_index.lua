-- An update that maintains the secondary index.
local pd = require("pointdrop")

pd.workload(function()
   local update = pd.statement("update-index", "UPDATE sbtest%u SET k=k+1 WHERE id=?", pd.INT)
   return function()
      update(pd.any_table(), pd.any_id())
   end
end)
