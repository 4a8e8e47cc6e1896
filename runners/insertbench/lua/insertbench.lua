-- Common part of the Insert Benchmark's roles; a role is one small script that requires this module.
--
--   local ib = require("insertbench")
--   ib.role(function(client)
--      return { ready = function() return true end, work = function() client.query("SELECT 1") end }
--   end)
--
-- Every thread is one client's connection in this role, with a table of its own (pi1, pi2, ...). `ready` waits until the
-- next transaction is due and says whether there is one; `work` does it, and only `work` counts as response time.
-- Runs unchanged on MySQL, MariaDB, MyRocks and Postgres. Commands: prepare, run, explain.

local ffi = require("ffi")

local ib = {}

sysbench.cmdline.options = {
   rows_per_commit = { "Rows in one transaction", 50 },
   commits = { "Transactions of each client; 0 for as many as there is time for", 0 },
   rate = { "Rows a second of each client; 0 for as fast as it goes", 0 },
   pair_fds = { "Sockets to the partner role, one a client, comma-separated", "" },
   ahead = { "Transactions that inserts may be ahead of deletes", 10 },
   deleted = { "Rows that are deleted from the head of each table while this step runs", 0 },
   query = { "What is queried: range or point", "range" },
}

-- Sizes of the value ranges, as the benchmark's author has them. Prices are cents, since sysbench 1.0 cannot bind floats
-- (its `set` writes behind the buffer).
local PRODUCTS, REGISTERS, CUSTOMERS, MAX_PRICE = 10000, 1000, 100000, 500
local DATA_TEMPLATE = "@@@@@@@@@@"
-- Rows are a second apart, from here on: 2023-01-01.
local FIRST_MOMENT = 1672531200

local INDEXES = {
   { "register", "cashregisterid, customerid, price" },
   { "product", "productid, customerid, price" },
   { "price", "price, dateandtime, customerid" },
}

-- Clock and sockets ---------------------------------------------------------------------------------------

ffi.cdef[[
typedef struct { long seconds; long nanoseconds; } pointdrop_time;
int clock_gettime(int clock, pointdrop_time *now);
int usleep(unsigned int us);
long send(int fd, const void *bytes, unsigned long size, int flags);
long recv(int fd, void *bytes, unsigned long size, int flags);
]]

local CLOCK_MONOTONIC, MSG_NOSIGNAL = 1, 0x4000
local moment = ffi.new("pointdrop_time")
local bytes = ffi.new("char[64]")

-- Seconds of the clock that the harness reads too.
local function now()
   ffi.C.clock_gettime(CLOCK_MONOTONIC, moment)
   return tonumber(moment.seconds) + tonumber(moment.nanoseconds) / 1e9
end

-- This client's socket to its partner, nil when it has none. One byte is one transaction, in either direction.
local function partner(client)
   local fds = {}
   for fd in sysbench.opt.pair_fds:gmatch("%d+") do
      fds[#fds + 1] = tonumber(fd)
   end
   local fd = fds[client]
   return fd and {
      tell = function() return ffi.C.send(fd, bytes, 1, MSG_NOSIGNAL) == 1 end,
      -- Waits for news; how many transactions the partner has done since, 0 when it has ended.
      hear = function() return math.max(0, tonumber(ffi.C.recv(fd, bytes, 64, 0))) end,
   }
end

-- Transactions --------------------------------------------------------------------------------------------

-- A function that waits until the next transaction of so many rows is due; a late one is not waited for.
function ib.pace(rate, rows)
   if rate == 0 then
      return function() end
   end
   local due = now()
   return function()
      local left = due - now()
      if left > 0 then
         ffi.C.usleep(left * 1e6)
      end
      due = due + rows / rate
   end
end

function ib.any_product() return sysbench.rand.uniform(1, PRODUCTS) end
function ib.any_register() return sysbench.rand.uniform(1, REGISTERS) end
function ib.any_customer() return sysbench.rand.uniform(1, CUSTOMERS) end
function ib.any_price() return sysbench.rand.uniform(0, MAX_PRICE * 100) end

-- One statement that inserts `count` rows after the row with id `last`.
function ib.insert_statement(client, last, count)
   local rows = {}
   for r = 1, count do
      rows[r] = ("('%s',%u,%u,%u,%u,'%s')"):format(
         os.date("!%Y-%m-%d %H:%M:%S", FIRST_MOMENT + last + r), ib.any_register(), ib.any_customer(), ib.any_product(),
         ib.any_price(), sysbench.rand.string(DATA_TEMPLATE))
   end
   return ("INSERT INTO pi%u (dateandtime, cashregisterid, customerid, productid, price, data) VALUES %s"):format(
      client.number, table.concat(rows, ","))
end

-- What sysbench calls -------------------------------------------------------------------------------------

local function new_client(number)
   local connection = sysbench.sql.driver():connect()
   local statements = {}
   return {
      number = number,
      -- A prepared statement as f(value, ...), its parameters integers.
      prepare = function(text)
         local statement, params = connection:prepare(text), {}
         for p = 1, select(2, text:gsub("%?", "")) do
            params[p] = statement:bind_create(sysbench.sql.type.BIGINT)
         end
         statement:bind_param(unpack(params))
         statements[#statements + 1] = statement
         return function(...)
            for p = 1, #params do
               params[p]:set((select(p, ...)))
            end
            statement:execute()
         end
      end,
      disconnect = function()
         for _, statement in ipairs(statements) do
            statement:close()
         end
         connection:disconnect()
      end,
      query = function(text) return connection:query(text) end,
      value = function(text) return tonumber((connection:query_row(text:format(number)))) end,
      partner = partner(number),
   }
end

-- A deadlock or a lock timeout rolls the statement back, and it is done again, as sysbench's own loop does.
local function done(work)
   repeat
      local ok, problem = pcall(work)
      if not ok and not (type(problem) == "table" and problem.errcode == sysbench.error.RESTART_EVENT) then
         error(problem, 2)
      end
   until ok
end

-- The harness reads its meters when it sees the last line of a role, while the connection still exists.
local LINGER_US = 150000

-- One write a line: threads print at once.
local function say(text, ...)
   io.stdout:write(text:format(...) .. "\n")
   io.stdout:flush()
end

function ib.role(define)
   ib.define = define
   local client, role

   function thread_init(thread)
      client = new_client(thread + 1)
      role = define(client)
   end

   -- sysbench wants a function of this name when it loads the script.
   function event() end

   function thread_run(thread)
      local begun, transactions = now(), 0
      say("begin: client=%d at=%.6f", client.number, begun)
      while (sysbench.opt.commits == 0 or transactions < sysbench.opt.commits) and ffi.C.sb_more_events(thread) do
         if not role.ready() then
            break
         end
         ffi.C.sb_event_start(thread)
         done(role.work)
         ffi.C.sb_event_stop(thread)
         transactions = transactions + 1
         if role.after then
            role.after()
         end
      end
      say("end: client=%d transactions=%d begin=%.6f end=%.6f", client.number, transactions, begun, now())
      ffi.C.usleep(LINGER_US)
   end

   function thread_done()
      client.disconnect()
   end
end

-- Schema --------------------------------------------------------------------------------------------------

local function postgres()
   return sysbench.sql.driver():name() == "pgsql"
end

local function create_table(client)
   local id = postgres() and "BIGSERIAL" or "BIGINT NOT NULL AUTO_INCREMENT"
   client.query(([[CREATE TABLE pi%u (
      transactionid %s, dateandtime %s, cashregisterid INTEGER NOT NULL, customerid INTEGER NOT NULL,
      productid INTEGER NOT NULL, price INTEGER NOT NULL, data VARCHAR(4000), PRIMARY KEY (transactionid))]]):format(
      client.number, id, postgres() and "TIMESTAMP" or "DATETIME"))
end

-- The three secondary indexes: one statement where the server can make them in one pass, else one each.
function ib.create_indexes(client)
   local n = client.number
   if not postgres() then
      local parts = {}
      for i, index in ipairs(INDEXES) do
         parts[i] = ("ADD INDEX pi%u_%s (%s)"):format(n, index[1], index[2])
      end
      client.query(("ALTER TABLE pi%u %s"):format(n, table.concat(parts, ", ")))
      return
   end
   for _, index in ipairs(INDEXES) do
      client.query(("CREATE INDEX pi%u_%s ON pi%u (%s)"):format(n, index[1], n, index[2]))
   end
end

local function prepare()
   for thread = 0, sysbench.opt.threads - 1 do
      local client = new_client(thread + 1)
      create_table(client)
      client.disconnect()
   end
end

-- The text with its values in place.
local function with(text, values)
   local v = 0
   return (text:gsub("%?", function()
      v = v + 1
      return ("%d"):format(values[v])
   end))
end

-- Prints, for each statement of the role, `plan: NAME` and the rows of EXPLAIN with columns separated by tabs.
local function explain()
   local client = new_client(1)
   local prefix = postgres() and "EXPLAIN (COSTS OFF) " or "EXPLAIN "
   for _, statement in ipairs(ib.define(client).statements or {}) do
      print("plan: " .. statement[1])
      local rows = client.query(prefix .. with(statement[2], statement[3]))
      for _ = 1, rows.nrows do
         local columns = rows:fetch_row()
         for c = 1, rows.nfields do
            columns[c] = columns[c] or "NULL"
         end
         print("  " .. table.concat(columns, "\t", 1, rows.nfields))
      end
   end
   client.disconnect()
end

sysbench.cmdline.commands = { prepare = { prepare }, explain = { explain } }

return ib
