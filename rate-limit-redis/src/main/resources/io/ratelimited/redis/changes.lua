-- What the nodes of a cluster share besides budgets: the changes of limits, and the budgets that callers are assigned.
--
-- KEYS   HASH field -> entry: its version, when it ends (microseconds since 1970; 0 for never), its text (empty if it was
--             removed). A field is "l<limit>" or "c<caller>:<limit>". Besides: "version", the position of the last write;
--             "sum", of the versions of all entries with a text, modulo 2^52, by which a node sees that it has the same;
--             "floor", up to which removed entries may be forgotten; "n<limit>", the number of its callers
--        ZSET field -> position of its last write, which grows with each write
--        ZSET field -> when it is forgotten
-- ARGV   1  the time
--        2  read | write | merge
-- read   3  position up to which the node has all; 4  most entries
--        reply: the time, the last position, the sum, the floor; for each later entry: position, field, entry
-- write  3  field; 4  version that the field must have; 5  microseconds until it ends, 0 for never; 6  most callers of a
--        limit; 7  text
--        reply: the version, the time, when it ends; or 0, the time and the entry, if the field has another version; or -1,
--        if there are too many callers
-- merge  3  floor; for each entry that the node has: field, version, end, text
--        reply: how many of them were missing or older here

local entries, positions, ends = KEYS[1], KEYS[2], KEYS[3]
-- For how long removed records of callers are remembered, in microseconds.
local REMEMBERED = 3600000000
local SUM_LIMIT = 2 ^ 52

local function whole(number)
  return string.format('%.0f', number)
end

local function get(field)
  return tonumber(redis.call('HGET', entries, field)) or 0
end

local position, floor = get('version'), get('floor')

-- The entry of a field; one without a version where there is none: a server may have evicted one key and kept another.
local function stored(field)
  return redis.call('HGET', entries, field) or '0 0 '
end

-- Version, end and text; nothing for a field without an entry. One that no node has written is a text without a version.
local function read_entry(field)
  local entry = redis.call('HGET', entries, field)
  if entry then
    local version, ending, text = string.match(entry, '^(%d+) (%d+) (.*)$')
    return tonumber(version), tonumber(ending), text or entry
  end
end

local function put_entry(field, version, ending, text)
  local version_before, _, text_before = read_entry(field)
  local had, has = (text_before or '') ~= '', text ~= ''
  position = math.max(position + 1, now, version or 0)
  version = version or position
  redis.call('ZADD', positions, whole(position), field)
  if ending > 0 then
    redis.call('ZADD', ends, whole(ending), field)
  else
    redis.call('ZREM', ends, field)
  end
  local sum = get('sum') - (had and version_before or 0) + (has and version or 0)
  local limit = string.match(field, '^c[^:]*:(.*)$')
  -- The last command: where one is refused, the record is as it was.
  local entry = whole(version) .. ' ' .. whole(ending) .. ' ' .. text
  local all = { field, entry, 'version', whole(position), 'sum', whole(sum % SUM_LIMIT) }
  if limit and had ~= has then
    all[7], all[8] = 'n' .. limit, whole(get('n' .. limit) + (has and 1 or -1))
  end
  redis.call('HSET', entries, unpack(all))
end

local function raise_floor(to)
  if to > floor then
    floor = to
    redis.call('HSET', entries, 'floor', whole(floor))
  end
end

-- What has ended is remembered as removed for a while, so that no node brings back what it replaced.
local function forget_ended(most)
  for _, field in ipairs(redis.call('ZRANGEBYSCORE', ends, '-inf', whole(now), 'LIMIT', 0, most)) do
    local version, _, text = read_entry(field)
    if (text or '') ~= '' then
      put_entry(field, version, now + REMEMBERED, '')
    else
      raise_floor(tonumber(redis.call('ZSCORE', positions, field) or 0))
      redis.call('HDEL', entries, field)
      redis.call('ZREM', positions, field)
      redis.call('ZREM', ends, field)
    end
  end
end

if ARGV[2] == 'read' then
  local reply = { now, position, get('sum'), floor }
  local page = redis.call(
    'ZRANGEBYSCORE', positions, whole(tonumber(ARGV[3]) + 1), '+inf', 'WITHSCORES', 'LIMIT', 0, ARGV[4])
  for i = 1, #page, 2 do
    local n = #reply
    reply[n + 1] = tonumber(page[i + 1])
    reply[n + 2] = page[i]
    reply[n + 3] = stored(page[i])
  end
  return reply
end

if ARGV[2] == 'write' then
  forget_ended(100)
  local field, text = ARGV[3], ARGV[7]
  local version, _, before = read_entry(field)
  local based_on = tonumber(ARGV[4])
  -- A node may remember a removed entry for longer than the server.
  local forgotten = not version and based_on <= floor
  if (version or 0) ~= based_on and not forgotten then
    return { 0, now, stored(field) }
  end
  local limit = string.match(field, '^c[^:]*:(.*)$')
  if limit and text ~= '' and (before or '') == '' and get('n' .. limit) >= tonumber(ARGV[6]) then
    -- Some of them may have ended.
    forget_ended(300)
    if get('n' .. limit) >= tonumber(ARGV[6]) then return { -1, now } end
  end
  local lasts = limit and text == '' and REMEMBERED or tonumber(ARGV[5])
  local ending = lasts > 0 and now + lasts or 0
  put_entry(field, nil, ending, text)
  return { position, now, ending }
end

local merged = 0
raise_floor(tonumber(ARGV[3]))
for i = 4, #ARGV, 4 do
  local version, ending, text = tonumber(ARGV[i + 1]), tonumber(ARGV[i + 2]), ARGV[i + 3]
  if (read_entry(ARGV[i]) or 0) < version then
    local over = ending > 0 and ending <= now
    put_entry(ARGV[i], version, over and now + REMEMBERED or ending, over and '' or text)
    merged = merged + 1
  end
end
return { merged }
