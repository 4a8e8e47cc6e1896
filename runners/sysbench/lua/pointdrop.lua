-- Common part of the sysbench workloads; a family is one small script that requires this module.
--
--   local pd = require("pointdrop")
--   pd.workload(function()
--      local select_c = pd.statement("point", "SELECT c FROM sbtest%u WHERE id=?", pd.INT)
--      return function() select_c(pd.any_table(), pd.any_id()) end
--   end)
--
-- The outer function defines the statements and returns the inner one, which is one event.
-- Runs unchanged on MySQL, MariaDB, MyRocks and Postgres. Commands: prepare, heat, run, explain.
-- An operation is one statement; BEGIN and COMMIT are statements too.

local pd = {}

-- 10 and 5 groups of 11 digits, as sysbench's own tests have them.
local group = "###########"
local c_template = string.rep(group .. "-", 9) .. group
local pad_template = string.rep(group .. "-", 4) .. group

-- Types of values in statements; one that is a table is a random string, made where it is used and never passed.
local ffi_type = sysbench.sql.type
pd.INT = ffi_type.INT
pd.C = { ffi_type.CHAR, 120, c_template }
pd.PAD = { ffi_type.CHAR, 60, pad_template }

sysbench.cmdline.options = {
   tables = { "Number of tables", 1 },
   table_size = { "Rows in each table", 10000 },
   data_seed = { "Seed of the rows", 1 },
   range_size = { "Ids in a range", 100 },
   points = { "Values in an in-list", 10 },
   on_id = { "Search by primary key; else by the secondary index", true },
   covered = { "Select only what the index holds", true },
   hot = { "Always the same adjacent ids after the middle of the table", false },
   one_row = { "Always the row with id 1", false },
   zipf = { "Zipfian ids instead of uniform ones", false },
   point_selects = { "Point selects in a transaction", 10 },
   simple_ranges = { "Plain range selects in a transaction", 1 },
   sum_ranges = { "SUM range selects in a transaction", 1 },
   order_ranges = { "ORDER BY range selects in a transaction", 1 },
   distinct_ranges = { "DISTINCT range selects in a transaction", 1 },
   count_pid = { "Count instructions of this process under callgrind; -1 for the connection's own; 0 for none", 0 },
   count_events = { "Events to count, after the warm-up", 0 },
   count_vgdb = { "vgdb with its options, as the shell takes it", "vgdb" },
   heat_s = { "Seconds after which heating ends, whatever is left", 60 },
}

-- The warm-up of a counted test ---------------------------------------------------------------------------

-- Its ids are not drawn but walked, every so many of the table and a quarter of it twice, so that each page is searched as
-- often as a structure that builds itself wants before it is built. InnoDB hashes a page after a search for every 16th of
-- its rows, and begins with that only after the first hundred searches of an index; a page of Postgres, with 38 rows, has
-- its image in the WAL after one write. Steps have no factor in common with the sizes of tables, so that the second round
-- meets other rows.
local WALK_STEPS, WALK_ROUNDS = { pgsql = 29, mysql = 11 }, 1.25
-- It ends sooner when its events have read the table so many times: what one search costs is then nothing beside them.
local READ_ROUNDS = 3
-- And there are that many events at least, for plans that are chosen anew after a few executions.
local LEAST_EVENTS = 6

-- Rows that the walk has stepped over, and that its events have read; nil while ids are drawn.
local walk

-- Says that the event reads so many rows without an id being drawn for them.
function pd.reads_rows(count)
   if walk then
      walk.read = walk.read + count
   end
end

local function walked_id()
   local id = walk.stepped % sysbench.opt.table_size + 1
   walk.stepped = walk.stepped + walk.step
   return id
end

-- Runs `body` until the walk is done.
local function walk_through(body)
   local rows, events = sysbench.opt.table_size, 0
   walk = { step = WALK_STEPS[sysbench.sql.driver():name()], stepped = 0, read = 0 }
   while events < LEAST_EVENTS or
      (walk.stepped < WALK_ROUNDS * rows and walk.read < READ_ROUNDS * rows and events * walk.step < WALK_ROUNDS * rows) do
      body()
      events = events + 1
   end
   walk = nil
end

-- Random values -------------------------------------------------------------------------------------------

function pd.any_table()
   return sysbench.rand.uniform(1, sysbench.opt.tables)
end

-- Exponent of the Zipfian ids; sysbench's default for rand-type=zipfian.
local ZIPF_EXPONENT = 0.8

-- Zipfian ids 1..n by rejection-inversion: W. Hoermann, G. Derflinger, "Rejection-inversion to generate variates from
-- monotone discrete distributions", ACM TOMACS 6 (1996). sysbench 1.0 has no Zipfian numbers of its own.
local function zipfian(n)
   local s = ZIPF_EXPONENT
   local function integral(x) return (x ^ (1 - s) - 1) / (1 - s) end
   local function inverse(y) return (1 + y * (1 - s)) ^ (1 / (1 - s)) end
   local top = integral(n + 0.5)
   local low = integral(1.5) - 1
   local squeeze = 2 - inverse(integral(2.5) - 2 ^ -s)
   return function()
      while true do
         local u = top + sysbench.rand.uniform(0, 2147483646) / 2147483647 * (low - top)
         local x = inverse(u)
         local k = math.min(math.max(math.floor(x + 0.5), 1), n)
         if k - x <= squeeze or u >= integral(k + 0.5) - k ^ -s then
            return k
         end
      end
   end
end

local any_zipf

function pd.any_id()
   if sysbench.opt.one_row then
      return 1
   end
   if walk then
      return walked_id()
   end
   if sysbench.opt.zipf then
      any_zipf = any_zipf or zipfian(sysbench.opt.table_size)
      return any_zipf()
   end
   return sysbench.rand.uniform(1, sysbench.opt.table_size)
end

-- The first of `size` adjacent ids, all of them in the table.
function pd.any_range_start(size)
   local last = math.max(1, sysbench.opt.table_size - size + 1)
   if walk then
      pd.reads_rows(size)
      return math.min(walked_id(), last)
   end
   return sysbench.rand.uniform(1, last)
end

-- `size` random ids, in a table that is used again.
local ids = {}

function pd.any_ids(size)
   for i = 1, size do
      ids[i] = pd.any_id()
   end
   return ids
end

-- The `size` adjacent ids after the middle of the table.
function pd.middle_ids(size)
   local before = math.floor(sysbench.opt.table_size / 2)
   pd.reads_rows(size)
   for i = 1, size do
      ids[i] = before + i
   end
   return ids
end

-- Statements ----------------------------------------------------------------------------------------------

local connection
local definitions = {}
local executed = 0

-- Defines a prepared statement. `text` has `%u` where the table's number goes and `?` for each value; returns
-- f(table_number, value, ...), or f() when no table is named.
function pd.statement(name, text, ...)
   local definition = { name = name, text = text, types = { ... }, per_table = text:find("%u", 1, true) ~= nil }
   definitions[#definitions + 1] = definition
   return function(table_number, ...)
      local prepared = definition.prepared[table_number or 1]
      local params, next_value = prepared.params, 1
      for p = 1, #params do
         if prepared.random[p] then
            params[p]:set_rand_str(prepared.random[p])
         else
            params[p]:set((select(next_value, ...)))
            next_value = next_value + 1
         end
      end
      executed = executed + 1
      prepared.statement:execute()
   end
end

-- The same for an in-list: f(table_number, values), with `?` repeated by the caller.
function pd.list_statement(name, text, size, ...)
   local leading = { ... }
   local types = { ... }
   for _ = 1, size do
      types[#types + 1] = pd.INT
   end
   local definition = {
      name = name, types = types, per_table = true,
      text = text:gsub("%(%?%)", "(" .. string.rep("?,", size - 1) .. "?)"),
   }
   definitions[#definitions + 1] = definition
   return function(table_number, values)
      local prepared = definition.prepared[table_number]
      for p = 1, #leading do
         prepared.params[p]:set_rand_str(prepared.random[p])
      end
      for v = 1, size do
         prepared.params[#leading + v]:set(values[v])
      end
      executed = executed + 1
      prepared.statement:execute()
   end
end

-- The same for a statement that is sent as text, its values in place, and never prepared.
function pd.text_statement(name, text, ...)
   local types, p = { ... }, 0
   definitions[#definitions + 1] = { name = name, text = text, types = types, per_table = true, as_text = true }
   local pattern = text:gsub("%?", function()
      p = p + 1
      return type(types[p]) == "table" and "'%s'" or "%u"
   end)
   return function(table_number, ...)
      local values, next_value = {}, 1
      for v, kind in ipairs(types) do
         if type(kind) == "table" then
            values[v] = sysbench.rand.string(kind[3])
         else
            values[v] = select(next_value, ...)
            next_value = next_value + 1
         end
      end
      executed = executed + 1
      connection:query(pattern:format(table_number, unpack(values)))
   end
end

local function prepare_one(definition, table_number)
   local statement = connection:prepare(definition.per_table and definition.text:format(table_number) or definition.text)
   local params, random = {}, {}
   for p, kind in ipairs(definition.types) do
      if type(kind) == "table" then
         params[p] = statement:bind_create(kind[1], kind[2])
         random[p] = kind[3]
      else
         params[p] = statement:bind_create(kind)
      end
   end
   if #params > 0 then
      statement:bind_param(unpack(params))
   end
   return { statement = statement, params = params, random = random }
end

local function connect()
   connection = sysbench.sql.driver():connect()
end

-- Parts of transactions ----------------------------------------------------------------------------------

-- Point selects, then the four kinds of range selects, each as often as its option says. Each kind draws a table of its
-- own, as sysbench's own transactions do.
function pd.reads()
   local point = pd.statement("point", "SELECT c FROM sbtest%u WHERE id=?", pd.INT)
   local between = " FROM sbtest%u WHERE id BETWEEN ? AND ?"
   local ranges = {
      { sysbench.opt.simple_ranges, pd.statement("simple", "SELECT c" .. between, pd.INT, pd.INT) },
      { sysbench.opt.sum_ranges, pd.statement("sum", "SELECT SUM(k)" .. between, pd.INT, pd.INT) },
      { sysbench.opt.order_ranges, pd.statement("order", "SELECT c" .. between .. " ORDER BY c", pd.INT, pd.INT) },
      { sysbench.opt.distinct_ranges,
        pd.statement("distinct", "SELECT DISTINCT c" .. between .. " ORDER BY c", pd.INT, pd.INT) },
   }
   return function()
      local t = pd.any_table()
      for _ = 1, sysbench.opt.point_selects do
         point(t, pd.any_id())
      end
      for _, range in ipairs(ranges) do
         t = pd.any_table()
         for _ = 1, range[1] do
            local first = pd.any_range_start(sysbench.opt.range_size)
            range[2](t, first, first + sysbench.opt.range_size - 1)
         end
      end
   end
end

-- An indexed update, an update of another column, and a delete with an insert of the same id, each in a table of its own.
function pd.writes()
   local update_index = pd.statement("update-index", "UPDATE sbtest%u SET k=k+1 WHERE id=?", pd.INT)
   local update_other = pd.statement("update-nonindex", "UPDATE sbtest%u SET c=? WHERE id=?", pd.C, pd.INT)
   local delete = pd.statement("delete", "DELETE FROM sbtest%u WHERE id=?", pd.INT)
   local insert = pd.statement(
      "insert", "INSERT INTO sbtest%u (id, k, c, pad) VALUES (?, ?, ?, ?)", pd.INT, pd.INT, pd.C, pd.PAD)
   return function()
      update_index(pd.any_table(), pd.any_id())
      update_other(pd.any_table(), pd.any_id())
      local t, id = pd.any_table(), pd.any_id()
      delete(t, id)
      insert(t, id, pd.any_id())
   end
end

-- One event that runs each of the parts between BEGIN and COMMIT.
function pd.transaction(...)
   local parts = { ... }
   local begin, commit = pd.statement("begin", "BEGIN"), pd.statement("commit", "COMMIT")
   return function()
      begin()
      for _, part in ipairs(parts) do
         part()
      end
      commit()
   end
end

-- Counting ------------------------------------------------------------------------------------------------

local function callgrind(pid, commands)
   local done = os.execute(("%s --pid=%d %s >/dev/null 2>&1"):format(sysbench.opt.count_vgdb, pid, commands))
   if done ~= 0 and done ~= true then
      error(("vgdb --pid=%d %s failed"):format(pid, commands))
   end
end

-- The first event is the warm-up, each one after it runs `body`; instructions are counted from the begin of the second to
-- the end of the last, all of it on the connection's own thread, so the window is exact. A dump sets callgrind's counters to
-- zero, and switched off before it they stay there.
local function counted(body)
   local events, before = 0, 0
   return function()
      if events == 0 then
         walk_through(body)
         if sysbench.opt.count_pid == -1 then
            sysbench.opt.count_pid = tonumber(connection:query_row("SELECT pg_backend_pid()"))
         end
         before = executed
         callgrind(sysbench.opt.count_pid, "instrumentation on")
      else
         body()
      end
      if events == sysbench.opt.count_events then
         callgrind(sysbench.opt.count_pid, "-c instrumentation off -c dump")
         print(("counted: pid=%d events=%d statements=%d"):format(
            sysbench.opt.count_pid, sysbench.opt.count_events, executed - before))
      end
      events = events + 1
   end
end

-- What sysbench calls ------------------------------------------------------------------------------------

-- `define` defines the statements and returns one event as a function.
function pd.workload(define)
   pd.define = define

   function thread_init()
      connect()
      local body = define()
      for _, definition in ipairs(definitions) do
         definition.prepared = {}
         for t = 1, definition.as_text and 0 or definition.per_table and sysbench.opt.tables or 1 do
            definition.prepared[t] = prepare_one(definition, t)
         end
      end
      event = sysbench.opt.count_pid ~= 0 and counted(body) or body
   end

   -- sysbench wants a function of this name when it loads the script, before options are known.
   function event() end

   function thread_done()
      for _, definition in ipairs(definitions) do
         for _, prepared in ipairs(definition.prepared) do
            prepared.statement:close()
         end
      end
      connection:disconnect()
   end
end

-- The statement with literals for EXPLAIN: ids from the middle of the table, and ranges of the size that is run.
local function literals(definition)
   local middle, p = math.floor(sysbench.opt.table_size / 2), 0
   local text = definition.text:gsub("BETWEEN %? AND %?", ("BETWEEN %u AND %u"):format(
      middle, middle + sysbench.opt.range_size - 1))
   return (text:gsub("%?", function()
      p = p + 1
      return type(definition.types[p]) == "table" and "'x'" or tostring(middle + p)
   end))
end

-- MySQL explains no other statements than SELECT before 5.6.3: they have no plan there.
local function explains_selects_only()
   local major, minor, point = connection:query_row("SELECT VERSION()"):match("^(%d+)%.(%d+)%.(%d+)")
   return major * 10000 + minor * 100 + point < 50603
end

-- Prints, for each statement that has a plan, `plan: NAME` and the rows of EXPLAIN with columns separated by tabs.
local function explain()
   connect()
   pd.define()
   local postgres = sysbench.sql.driver():name() == "pgsql"
   local prefix = postgres and "EXPLAIN (COSTS OFF) " or "EXPLAIN "
   local selects_only = not postgres and explains_selects_only()
   for _, definition in ipairs(definitions) do
      if definition.per_table and not (selects_only and not definition.text:find("^SELECT")) then
         print("plan: " .. definition.name)
         local rows = connection:query(prefix .. literals(definition):format(1))
         for _ = 1, rows.nrows do
            local columns = rows:fetch_row()
            for c = 1, rows.nfields do
               columns[c] = columns[c] or "NULL"
            end
            print("  " .. table.concat(columns, "\t", 1, rows.nfields))
         end
      end
   end
   connection:disconnect()
end

-- sysbench seeds its random numbers for `run` only, so the rows come from numbers of our own: the same seed gives the same
-- table, to the byte, on every DBMS. xorshift32: G. Marsaglia, "Xorshift RNGs", Journal of Statistical Software 8 (2003).
local function xorshift(seed)
   local state = bit.tobit(seed)
   if state == 0 then
      state = 1
   end
   return function(n)
      state = bit.bxor(state, bit.lshift(state, 13))
      state = bit.bxor(state, bit.rshift(state, 17))
      state = bit.bxor(state, bit.lshift(state, 5))
      return state % 4294967296 % n
   end
end

-- Groups of digits that rows are put together from; many enough that compression finds none twice in a page.
local GROUPS = 65536

local function digit_groups(random)
   local groups = {}
   for g = 1, GROUPS do
      groups[g] = ("%05d%06d"):format(random(100000), random(1000000))
   end
   return function(count)
      local chosen = {}
      for i = 1, count do
         chosen[i] = groups[random(GROUPS) + 1]
      end
      return table.concat(chosen, "-")
   end
end

-- The storage engine is the server's default, which is what MyRocks and InnoDB configs set.
local function create_table(number)
   local driver = sysbench.sql.driver():name()
   local id = driver == "pgsql" and "SERIAL" or "INTEGER NOT NULL AUTO_INCREMENT"
   connection:query(([[CREATE TABLE sbtest%u (
      id %s, k INTEGER DEFAULT 0 NOT NULL, c CHAR(120) DEFAULT '' NOT NULL, pad CHAR(60) DEFAULT '' NOT NULL,
      PRIMARY KEY (id))]]):format(number, id))
   local rows, random = sysbench.opt.table_size, xorshift(sysbench.opt.data_seed * 1000 + number)
   local digits = digit_groups(random)
   connection:bulk_insert_init(("INSERT INTO sbtest%u (k, c, pad) VALUES"):format(number))
   for _ = 1, rows do
      connection:bulk_insert_next(("(%u,'%s','%s')"):format(random(rows) + 1, digits(10), digits(5)))
   end
   connection:bulk_insert_done()
   connection:query(("CREATE INDEX k_%u ON sbtest%u (k)"):format(number, number))
end

local function prepare()
   connect()
   for number = sysbench.tid % sysbench.opt.threads + 1, sysbench.opt.tables, sysbench.opt.threads do
      create_table(number)
   end
   connection:disconnect()
end

-- Rows that one statement of heating reads, so that it can end in time.
local HEATED_ROWS = 100000

-- Reads every row by the primary key and every entry of the secondary index, in their order, so that all of both is in the
-- server's memory, as far as that goes, and nothing is read for the first time while a test is measured.
local function heat()
   connect()
   local postgres = sysbench.sql.driver():name() == "pgsql"
   if postgres then
      for _, name in ipairs({ "enable_seqscan", "enable_bitmapscan" }) do
         connection:query("SET " .. name .. " = off")
      end
      -- Workers would read with memory of their own.
      connection:query("SET max_parallel_workers_per_gather = 0")
   end
   local ends = os.time() + sysbench.opt.heat_s
   for number = sysbench.tid % sysbench.opt.threads + 1, sysbench.opt.tables, sysbench.opt.threads do
      for _, by in ipairs({ { "id", "c", "PRIMARY" }, { "k", "k", "k_" .. number } }) do
         local key, column, index = unpack(by)
         local hint = postgres and "" or (" FORCE INDEX (%s)"):format(index)
         for first = 0, sysbench.opt.table_size, HEATED_ROWS do
            if os.time() >= ends then
               connection:disconnect()
               return
            end
            connection:query(("SELECT COUNT(%s) FROM sbtest%u%s WHERE %s > %u AND %s <= %u"):format(
               column, number, hint, key, first, key, first + HEATED_ROWS))
         end
      end
   end
   connection:disconnect()
end

sysbench.cmdline.commands = {
   prepare = { prepare, sysbench.cmdline.PARALLEL_COMMAND },
   heat = { heat, sysbench.cmdline.PARALLEL_COMMAND },
   explain = { explain },
}

return pd
