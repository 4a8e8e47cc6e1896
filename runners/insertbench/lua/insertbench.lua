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
   query = { "What is queried: range or point", "range" },
}

-- Values of each column, from 0 up, as the benchmark's author has them.
local PRODUCTS, REGISTERS, CUSTOMERS, PRICES = 10000, 1000, 100000, 500
-- `data` is so many characters, this share of them random and the others all the same.
local DATA_MIN, DATA_MAX, RANDOM_SHARE = 10, 20, 0.375
local BASE64 = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
-- Random characters to cut from, far more than storage compresses at once.
local NOISE_BYTES = 262144
-- Rows are a second apart, from here on: 2023-01-01.
local FIRST_MOMENT = 1672531200

-- Each with its columns, all that a range query selects, and how its first column is searched.
ib.INDEXES = {
   { name = "marketsegment", columns = "productid, customerid, price", search = "productid >=", values = PRODUCTS },
   { name = "registersegment", columns = "cashregisterid, customerid, price", search = "cashregisterid >",
     values = REGISTERS },
   { name = "pdc", columns = "price, dateandtime, customerid", search = "price >=", values = PRICES },
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
function ib.now()
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
   local due = ib.now()
   return function()
      local left = due - ib.now()
      if left > 0 then
         ffi.C.usleep(left * 1e6)
      end
      due = due + rows / rate
   end
end

-- One of 0 .. count - 1.
function ib.any(count)
   return sysbench.rand.uniform(0, count - 1)
end

local noise

local function any_data()
   if not noise then
      local letters = {}
      for i = 1, NOISE_BYTES do
         local letter = ib.any(#BASE64) + 1
         letters[i] = BASE64:sub(letter, letter)
      end
      noise = table.concat(letters)
   end
   local length = sysbench.rand.uniform(DATA_MIN, DATA_MAX)
   local random = math.floor(length * RANDOM_SHARE)
   local before = ib.any(NOISE_BYTES - random + 1)
   return ("a"):rep(length - random) .. noise:sub(before + 1, before + random)
end

-- One statement that inserts `count` rows, number `last` + 1 and so on. Prices are whole numbers written with decimals,
-- as the published client writes them.
function ib.insert_statement(client, last, count)
   local rows = {}
   for r = 1, count do
      rows[r] = ("('%s',%u,%u,%u,%u.00,'%s')"):format(
         os.date("!%Y-%m-%d %H:%M:%S", FIRST_MOMENT + last + r), ib.any(REGISTERS), ib.any(CUSTOMERS),
         ib.any(PRODUCTS), ib.any(PRICES), any_data())
   end
   return ("INSERT INTO pi%u (dateandtime, cashregisterid, customerid, productid, price, data) VALUES %s"):format(
      client.number, table.concat(rows, ","))
end

-- What sysbench calls -------------------------------------------------------------------------------------

function ib.postgres()
   return sysbench.sql.driver():name() == "pgsql"
end

local function new_client(number)
   local connection = sysbench.sql.driver():connect()
   local function query(text) return connection:query(text) end
   return {
      number = number,
      -- A statement with `?` for each value, as f(value, ...): text on MySQL and its relatives, on Postgres prepared and
      -- executed by SQL, as the published client does.
      statement = function(name, text)
         if not ib.postgres() then
            local pattern = text:gsub("%?", "%%u")
            return function(...) query(pattern:format(...)) end
         end
         local count = 0
         local numbered = text:gsub("%?", function()
            count = count + 1
            return "$" .. count
         end)
         query(("PREPARE %s (%s) AS %s"):format(name, ("int, "):rep(count - 1) .. "int", numbered))
         local pattern = ("EXECUTE %s (%s)"):format(name, ("%u, "):rep(count - 1) .. "%u")
         return function(...) query(pattern:format(...)) end
      end,
      disconnect = function() connection:disconnect() end,
      query = query,
      -- The first column of the first row, nil when there is none.
      row = function(text) return (connection:query_row(text)) end,
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
      local begun, transactions = ib.now(), 0
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
      say("end: client=%d transactions=%d begin=%.6f end=%.6f", client.number, transactions, begun, ib.now())
      ffi.C.usleep(LINGER_US)
   end

   function thread_done()
      client.disconnect()
   end
end

-- Schema --------------------------------------------------------------------------------------------------

local function create_table(client)
   local id = ib.postgres() and "BIGSERIAL" or "BIGINT NOT NULL AUTO_INCREMENT"
   client.query(([[CREATE TABLE pi%u (
      transactionid %s, dateandtime %s, cashregisterid INTEGER NOT NULL, customerid INTEGER NOT NULL,
      productid INTEGER NOT NULL, price INTEGER NOT NULL, data VARCHAR(4000), PRIMARY KEY (transactionid))]]):format(
      client.number, id, ib.postgres() and "TIMESTAMP" or "DATETIME"))
   if ib.postgres() then
      -- Each connection takes so many ids at once; those it has not used are never used.
      client.query(("ALTER SEQUENCE pi%u_transactionid_seq CACHE 1000"):format(client.number))
   end
end

-- The three secondary indexes: one statement for InnoDB, which can make them in one pass, else one each.
function ib.create_indexes(client)
   local n = client.number
   if ib.postgres() then
      for _, index in ipairs(ib.INDEXES) do
         client.query(("CREATE INDEX pi%u_%s ON pi%u (%s)"):format(n, index.name, n, index.columns))
      end
      return
   end
   local parts = {}
   for i, index in ipairs(ib.INDEXES) do
      parts[i] = ("ADD INDEX pi%u_%s (%s)"):format(n, index.name, index.columns)
   end
   local in_one_pass = client.row("SELECT UPPER(@@default_storage_engine)") ~= "ROCKSDB"
   for _, part in ipairs(in_one_pass and { table.concat(parts, ", ") } or parts) do
      client.query(("ALTER TABLE pi%u %s"):format(n, part))
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

-- MySQL explains no other statements than SELECT before 5.6.3: they have no plan there.
local function explains_selects_only(client)
   local major, minor, point = client.row("SELECT VERSION()"):match("^(%d+)%.(%d+)%.(%d+)")
   return major * 10000 + minor * 100 + point < 50603
end

-- Prints, for each statement of the role, `plan: NAME` and the rows of EXPLAIN with columns separated by tabs.
local function explain()
   local client = new_client(1)
   local prefix = ib.postgres() and "EXPLAIN (COSTS OFF) " or "EXPLAIN "
   local selects_only = not ib.postgres() and explains_selects_only(client)
   for _, statement in ipairs(ib.define(client).statements or {}) do
      if not (selects_only and not statement[2]:find("^SELECT")) then
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
   end
   client.disconnect()
end

sysbench.cmdline.commands = { prepare = { prepare }, explain = { explain } }

return ib
