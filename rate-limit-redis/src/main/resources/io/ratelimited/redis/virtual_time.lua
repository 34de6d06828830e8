-- Token bucket, GCRA, smooth bursty and leaky bucket: one time V at which the bucket holds zero permits.
--
-- KEYS   STRING "<meta> " and big-endian integers: V, 7 bytes, in microseconds since 1970; epoch, 7 bytes; then, unless
--        zero: part, 5 bytes, V's parts of a microsecond; written, 7 bytes, the time of the last call if V was ahead of it
-- epoch  of the marks that still tell what was reserved behind them: begins when the key does, and anew when permits are
--        given back from the middle or the clock steps back; the time of that, or the next number. Cancelling a
--        reservation of an earlier epoch gives nothing back
-- ARGV   one       parts of a microsecond in which V is counted, so that no rate drifts
--        depth, depth part         what the bucket holds, as a time
--        queue, queue part         a wait of so much is refused; -1 for none
--        pays      1 if a call waits for its own permits, 0 if for those of its predecessors
--        origin    when the cluster began: a bucket that starts empty was empty then; -1 if it starts full
--        step      parts that one permit takes
--        burst     the most permits that can be stored
-- call   a, b      cost in microseconds and parts

local virtual_time = {}

local function vt_begin(s)
  s.epoch = max(now, (s.epoch or 0) + 1)
end

local function vt_params(key, meta, p)
  local s = {
    key = key, meta = meta, one = tonumber(ARGV[p]), depth = tonumber(ARGV[p + 1]), depth_part = tonumber(ARGV[p + 2]),
    queue = tonumber(ARGV[p + 3]), queue_part = tonumber(ARGV[p + 4]), pays = ARGV[p + 5] == '1',
    origin = tonumber(ARGV[p + 6]), step = tonumber(ARGV[p + 7]), burst = tonumber(ARGV[p + 8])
  }
  s.low, s.low_part = now - s.depth, 0
  if s.depth_part > 0 then
    s.low, s.low_part = s.low - 1, s.one - s.depth_part
  end
  return s
end

local function vt_read(s, value)
  local at, part, written = #s.meta + 2, 0, 0
  local extra = #value - at - 13
  s.v, s.epoch = struct.unpack('>I7I7', value, at)
  if extra == 5 or extra == 12 then part = struct.unpack('>I5', value, at + 14) end
  if extra >= 7 then written = struct.unpack('>I7', value, #value - 6) end
  s.part = part
  if behind(written > 0 and written or s.v) then
    -- The clock has stepped back; so does V.
    if written > now then
      s.v = s.v - (written - now)
    else
      s.v, s.part = now, 0
    end
    vt_begin(s)
    s.changed = true
  end
end

function virtual_time.open(key, meta, p)
  local value = get(key)
  if value == false then return nil end
  local s = vt_params(key, meta, p)
  if value then
    if sub(value, 1, #meta + 1) ~= meta .. ' ' then return nil end
    vt_read(s, value)
    s.found = true
  else
    s.epoch = now
    local origin = min(s.origin, now)
    if s.origin >= 0 and origin > s.low then
      s.v, s.part = origin, 0
      return s
    end
    s.v, s.part = s.low, s.low_part
  end
  if s.v < s.low or (s.v == s.low and s.part < s.low_part) then
    s.v, s.part = s.low, s.low_part
  end
  return s
end

function virtual_time.decide(s, permits, a, b, longest)
  local v, part = s.v + a, s.part + b
  if part >= s.one then
    v, part = v + 1, part - s.one
  end
  s.next, s.next_part = v, part
  if not s.pays then
    v, part = s.v, s.part
  end
  local wait = v - now
  if part > 0 then wait = wait + 1 end
  if wait <= 0 then return 0 end
  if wait > FAR then return UNKNOWN end
  local late = wait - longest
  if s.queue >= 0 then
    local room = v - s.queue - now + 1
    if part < s.queue_part then room = room - 1 end
    late = max(late, room)
  end
  return late > 0 and -late or wait
end

function virtual_time.take(s)
  s.v, s.part = s.next, s.next_part
  return format('%.0f+%.0f@%.0f', s.v, s.part, s.epoch)
end

-- The difference of two times as microseconds and parts.
local function vt_less(s, v, part, other, other_part)
  v, part = v - other, part - other_part
  if part < 0 then return v - 1, part + s.one end
  return v, part
end

-- The last reservation is undone exactly. Behind a call that paid for itself others may have reserved: if all have gone,
-- no more than the room that was left above it since is given back; if some wait, only what they have not reserved.
function virtual_time.cancel(s, permits, a, b, mark)
  local v, part, epoch = match(mark, '^(%d+)%+(%d+)@(%d+)$')
  if not s.found or s.epoch ~= tonumber(epoch) then return false end
  v, part = tonumber(v), tonumber(part)
  local last = s.v == v and s.part == part
  if not last then
    if not s.pays then return false end
    if s.v < now or (s.v == now and s.part == 0) then
      local room, room_part = vt_less(s, v, part, s.low, s.low_part)
      if room < a or (room == a and room_part < b) then
        a, b = room, room_part
      end
    else
      local behind, behind_part = vt_less(s, s.v, s.part, v, part)
      a, b = vt_less(s, a, b, behind, behind_part)
    end
  end
  if a < 0 or (a == 0 and b == 0) then return false end
  if not last then vt_begin(s) end
  s.v, s.part = vt_less(s, s.v, s.part, a, b)
  return true
end

-- Permits in a time, rounded down.
local function vt_permits(s, micros, part)
  local parts = micros * s.one + part
  if parts < 9007199254740992 then return floor(parts / s.step) end
  return floor((micros + part / s.one) / (s.step / s.one) * (1 - 1e-15))
end

-- Where the next caller pays, one call goes on credit beside what is stored.
function virtual_time.remaining(s)
  if s.v > now or (s.v == now and s.part > 0) then return 0 end
  local credit = s.pays and 0 or 1
  if s.queue >= 0 then return credit end
  local left, part = now - s.v, 0
  if s.part > 0 then
    left, part = left - 1, s.one - s.part
  end
  return min(s.burst, vt_permits(s, left, part)) + credit
end

function virtual_time.reset(s)
  local left = s.v + s.depth - now
  local part = s.part + s.depth_part
  if part > s.one then
    left = left + 2
  elseif part > 0 then
    left = left + 1
  end
  return max(0, left)
end

function virtual_time.save(s)
  local reset = virtual_time.reset(s)
  if reset == 0 and slack == 0 then
    redis.call('DEL', s.key)
    return
  end
  local value = s.meta .. ' ' .. struct.pack('>I7I7', s.v, s.epoch)
  if s.part > 0 then value = value .. struct.pack('>I5', s.part) end
  if s.v > now or (s.v == now and s.part > 0) then value = value .. struct.pack('>I7', now) end
  redis.call('SET', s.key, value, 'PX', millis(reset))
end

function virtual_time.leave(key, meta)
  local kind, permits, period, burst = match(meta, '^(%a)(%d+)/([^/]+)/?(%d*)$')
  local s = { meta = meta }
  vt_read(s, redis.call('GET', key))
  local step = period / 1000 / permits
  local depth = kind == 'l' and 0 or (burst == '' and permits or burst) * step
  if s.v > now or (s.v == now and s.part > 0) then
    local debt = s.v - now + (s.part > 0 and 1 or 0)
    return { left = 0, of = 1, debt = debt / step, time = debt, epoch = s.epoch }
  end
  if depth == 0 then return { left = 1, of = 1, debt = 0, time = 0, epoch = s.epoch } end
  return { left = min(depth, now - s.v), of = depth, debt = 0, time = 0, epoch = s.epoch }
end

function virtual_time.resume(key, meta, p, budget)
  local s = vt_params(key, meta, p)
  s.part, s.epoch = 0, budget.epoch
  vt_begin(s)
  if budget.debt == 0 then
    s.v = now - floor((s.depth + s.depth_part / s.one) * budget.left / budget.of)
  else
    local keeps_time = sub(meta, 1, 1) == 's'
    s.v = now + min(FAR, keeps_time and budget.time or ceil(budget.debt * s.step / s.one))
  end
  return s
end

families.t = virtual_time
families.g = virtual_time
families.s = virtual_time
families.l = virtual_time

