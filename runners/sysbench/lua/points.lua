-- An in-list on the primary key or the secondary index; with --covered the index holds all that is asked for.
local pd = require("pointdrop")

pd.workload(function()
   local size = sysbench.opt.points
   local column = sysbench.opt.on_id and "id" or "k"
   local wanted = sysbench.opt.covered and column or column .. ", c"
   local select_points = pd.list_statement(
      "points", "SELECT " .. wanted .. " FROM sbtest%u WHERE " .. column .. " IN (?)", size)
   return function()
      select_points(pd.any_table(), pd.any_ids(size))
   end
end)
