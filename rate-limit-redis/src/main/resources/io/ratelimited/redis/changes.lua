-- The record that the nodes of a cluster share besides budgets: the changes of limits, and the budgets that callers are
-- assigned.
--
-- KEYS   HASH "version", which grows with each write; field -> entry: its version, when it ends (0 for never), when it was
--             written (microseconds since 1970), its author and its text, which is empty if it was removed. A field is
--             "l<limit>" or "c<caller>:<limit>"
--        LIST the latest writes, the last one first. Two elements each: its version, the version before it and the entry,
--             which is empty if the field was forgotten; and the field
-- ARGV   1  the time
--        2  read | write | restore
--        3  the version that the node has, 0 if it has nothing
-- read   4  0, or the cursor of the reply before
-- write  4  field; 5  version of the entry that it replaces, 0 for none; 6  microseconds until it ends, 0 for never, negative
--        for at once; 7  author and text; 8 and so on  fields that may be forgotten
-- restore  4 and so on  fields and entries that the node has; the reply is the time
-- reply  the time; the version; a cursor; 1 if it was written or there was nothing to remove, 0 if the field has another
--        version; for each entry: version, field, entry. Without a cursor these are all writes since the node's version, the
--        last one first. With one they are a page of the whole record; 0 is the cursor of the last page

local record, latest = KEYS[1], KEYS[2]
-- For how long what was removed or has ended is remembered, in microseconds, so that no node brings back what it replaced.
local REMEMBERED = 3600000000
local PAGE = 500
-- A node that lacks more writes than these reads the whole record.
local LATEST = 100

-- The largest whole number to which Lua can add 1.
local EXACT = 9007199254740991

local function whole(number)
  return string.format('%.0f', number)
end

-- Nothing for what no node has written. Instances read no more digits, either: what they skip is replaced by the next write.
local function number_of(text)
  return text and #text <= 18 and tonumber(string.match(text, '^%d+$')) or nil
end

local function version_of(text)
  local version = number_of(text)
  return version and version < EXACT and version or nil
end

local position = version_of(redis.call('HGET', record, 'version')) or 0

-- The version and the end of a field's entry; nothing where there is none, or one that no node has written.
local function read_entry(field)
  local entry = redis.call('HGET', record, field) or ''
  local version, ending, written = string.match(entry, '^(%d+) (%d+) (%d+) [^ ]* ')
  version, ending = version_of(version), number_of(ending)
  if version and ending and number_of(written) then return version, ending end
end

local function put_entry(field, entry, version)
  redis.call('LPUSH', latest, field, whole(version) .. ' ' .. whole(position) .. ' ' .. entry)
  redis.call('LTRIM', latest, 0, 2 * LATEST - 1)
  -- The last command: where one is refused, the record is as it was.
  redis.call('HSET', record, 'version', whole(version), field, entry)
  position = version
end

-- All writes since a version; nothing if some of them are not known any more, or the record never had that version.
local function written_since(version)
  local reply, at = { now, position, '', 1 }, position
  for i = 0, 2 * LATEST, 2 do
    if at == version then return reply end
    local write = redis.call('LRANGE', latest, i, i + 1)
    local this, before, entry = string.match(write[1] or '', '^(%d+) (%d+) (.*)$')
    if tonumber(this) ~= at or not write[2] then return end
    local n = #reply
    reply[n + 1], reply[n + 2], reply[n + 3] = at, write[2], entry
    at = tonumber(before)
  end
end

local function page(cursor)
  local found = redis.call('HSCAN', record, cursor, 'COUNT', PAGE)
  local reply, fields = { now, position, found[1], 1 }, found[2]
  for i = 1, #fields, 2 do
    local n = #reply
    reply[n + 1], reply[n + 2], reply[n + 3] = 0, fields[i], fields[i + 1]
  end
  return reply
end

local function read(version, cursor)
  return cursor == '0' and version > 0 and written_since(version) or page(cursor)
end

local function forget(field)
  local _, ending = read_entry(field)
  if ending and ending > 0 and ending <= now - REMEMBERED then
    put_entry(field, '', position + 1)
    redis.call('HDEL', record, field)
  end
end

local function write(known, field, based_on, lasts, tail)
  local version = read_entry(field)
  if version and version ~= based_on then
    -- A node that has this version of the record, but not of the field, reads all of it.
    local reply = read(known == position and 0 or known, '0')
    reply[4] = 0
    return reply
  end
  -- Nobody has what is removed: to remember that would take the room of a caller.
  if lasts < 0 and based_on == 0 and string.sub(field, 1, 1) == 'c' and not redis.call('HGET', record, field) then
    return read(known, '0')
  end
  for i = 8, #ARGV do forget(ARGV[i]) end
  local ends = lasts == 0 and 0 or now + math.max(lasts, 0)
  version = math.max(position + 1, now, based_on + 1)
  put_entry(field, whole(version) .. ' ' .. whole(ends) .. ' ' .. whole(now) .. ' ' .. tail, version)
  return read(known, '0')
end

local function restore(field, entry)
  local version = tonumber(string.match(entry, '^%d+'))
  -- Another version than any that the node can have, also where the clock has stepped back.
  if (read_entry(field) or 0) < version then put_entry(field, entry, math.max(position + 1, now, version + 1)) end
end

local known = tonumber(ARGV[3])
if ARGV[2] == 'write' then return write(known, ARGV[4], tonumber(ARGV[5]), tonumber(ARGV[6]), ARGV[7]) end
if ARGV[2] == 'read' then return read(known, ARGV[4]) end
for i = 4, #ARGV, 2 do restore(ARGV[i], ARGV[i + 1]) end
return { now }
