-- A delete by primary key; ids repeat, so later ones may find nothing.
local pd = require("pointdrop")

pd.workload(function()
   local delete = pd.statement("delete", "DELETE FROM sbtest%u WHERE id=?", pd.INT)
   return function()
      delete(pd.any_table(), pd.any_id())
   end
end)
