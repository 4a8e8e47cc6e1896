-- One row by primary key.
local pd = require("pointdrop")

pd.workload(function()
   local select_c = pd.statement("point", "SELECT c FROM sbtest%u WHERE id=?", pd.INT)
   return function()
      select_c(pd.any_table(), pd.any_id())
   end
end)
