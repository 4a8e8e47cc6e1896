-- An update of a column no index holds; with --zipf some rows are hot, with --one_row all updates meet in one row.
local pd = require("pointdrop")

pd.workload(function()
   local update = pd.statement("update-nonindex", "UPDATE sbtest%u SET c=? WHERE id=?", pd.C, pd.INT)
   return function()
      update(pd.any_table(), pd.any_id())
   end
end)
