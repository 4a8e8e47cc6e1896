-- Prints as many random ids as events, without any server.
local pd = require("pointdrop")

function thread_init() end
function thread_done() end
function event()
   print("id " .. pd.any_id())
end
