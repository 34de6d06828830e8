-- Blocks of keys that keep trying: for calls under limits that have them. BlockRule.java has the same steps, with their
-- numbers.
--
-- KEYS   STRING of big-endian integers: begin and end of the last block, 7 bytes each, in microseconds since 1970; level, 2
--        bytes, the number of blocks without a quiet time between them
-- ARGV   packed: first, max   microseconds of the first and of the longest block; then the factor, as text
-- mark   the letter of a limit: b, a refused call is an offence; c, only what calls are charged is one; -, no blocks
-- reply  for each limit with blocks: microseconds until the block ends, or 0; level; microseconds of a block that this script
--        has begun, or 0

local function block()
  local block = {}

  local MOST_LEVEL = 1000
  -- A value with a longer block is none that a script has written.
  local LONGEST = 31536001000000

  function block.open(key, p, mark)
    local s = { key = key, mark = mark, begin = 0, finish = 0, level = 0, begun = 0 }
    s.first, s.max = struct.unpack('>I7I7', ARGV[p])
    s.factor = tonumber(sub(ARGV[p], 15))
    local value = read('GET', key)
    if value and #value == 16 then
      local begin, finish, level = struct.unpack('>I7I7I2', value)
      if finish > begin and finish - begin <= LONGEST then s.begin, s.finish, s.level = begin, finish, level end
      if behind(s.begin) then
        -- The clock has stepped back behind the block: it begins now, and is no longer than it was.
        s.begin, s.finish, s.changed = now, now + s.finish - s.begin, true
      end
    end
    return s
  end

  function block.left(s)
    return max(0, s.finish - now)
  end

  -- B2 and B3.
  function block.offend(s)
    if s.finish > now then return end
    if now - s.finish >= s.max then s.level = 0 end
    s.level = min(MOST_LEVEL, s.level + 1)
    local length = s.first
    for _ = 2, s.level do
      if length >= s.max or s.factor <= 1 then break end
      length = min(s.max, ceil(length * s.factor))
    end
    s.begin, s.finish, s.begun, s.changed = now, now + length, length, true
  end

  -- A block that a node has begun while it could not ask.
  function block.impose(s, left, level)
    s.level, s.changed = min(MOST_LEVEL, max(s.level, level)), true
    if now + left > s.finish then s.begin, s.finish = now, now + left end
  end

  -- A quiet time forgives.
  function block.save(s)
    local value = struct.pack('>I7I7I2', s.begin, s.finish, s.level)
    redis.call('SET', s.key, value, 'PX', millis(s.finish + s.max - now))
  end

  return block
end
