-- A counter per window of the calendar.
--
-- KEYS   STRING of big-endian integers of 7 bytes, the last window anyone has a permit in: start, taken, epoch, and written if
--        the window is not the current one or nodes say the time; times in microseconds since 1970; written as in
--        virtual_time.lua; epoch: when the key began, so that what is cancelled after a reset gives nothing back
-- ARGV   permits   of one window
--        period    microseconds
--        offset, transition, offset, ...   microseconds east of UTC before the first transition, the instant of the
--                  transition, the offset from then on, and so forth; ended by an empty argument

local fixed_window = {}

local function fw_params(key, p)
  return { key = key, permits = tonumber(ARGV[p]), period = tonumber(ARGV[p + 1]), zone = p + 2 }
end

local function fw_offset(s, time)
  local at = s.zone
  while ARGV[at + 1] ~= '' and tonumber(ARGV[at + 1]) <= time do
    at = at + 2
  end
  return tonumber(ARGV[at])
end

local function fw_index(s, time)
  return floor((time + fw_offset(s, time)) / s.period)
end

local function fw_start(s, index)
  local at = s.zone
  local begin = index * s.period
  while true do
    local start = begin - tonumber(ARGV[at])
    local transition = tonumber(ARGV[at + 1])
    if not transition or start < transition then return start end
    -- A beginning that the clocks leave out is the moment at which they are moved.
    if begin - tonumber(ARGV[at + 2]) < transition then return transition end
    at = at + 2
  end
end

function fixed_window.open(key, meta, p)
  local value = read('GET', key)
  local s = fw_params(key, p)
  local start, taken, epoch, written
  if value and #value >= 21 then
    start, taken, epoch = struct.unpack('>I7I7I7', value)
    written = #value >= 28 and struct.unpack('>I7', value, 22) or 0
    behind(written > 0 and written or start)
  end
  local index = fw_index(s, now)
  s.current = fw_start(s, index)
  s.start, s.taken, s.index, s.epoch = s.current, 0, index, now
  if start and start >= s.current then
    s.found = true
    s.taken = taken
    s.epoch = epoch
    local ahead = written > 0 and written < start and written - now <= s.period
    if start > now and not ahead and start - now > s.period then
      -- The clock has stepped back by more than a window: go on counting in this one.
      s.changed = true
    else
      s.start = start
      s.index = fw_index(s, start)
      if start > now and not ahead then
        -- The clock has stepped back a little: time stands still.
        s.current = start
      end
    end
  end
  return s
end

function fixed_window.decide(s, permits, a, b, longest)
  s.next, s.next_taken, s.next_index = s.start, s.taken + permits, s.index
  if s.next_taken > s.permits then
    s.next_index = s.index + 1
    s.next, s.next_taken = fw_start(s, s.next_index), permits
  end
  if s.next == s.current then return 0 end
  local wait = max(0, s.next - now)
  return wait > longest and -(wait - longest) or wait
end

function fixed_window.take(s)
  s.start, s.taken, s.index = s.next, s.next_taken, s.next_index
  return format('%.0f@%.0f', s.start, s.epoch)
end

-- Permits of the last window are given back; windows behind it are closed. A count at its largest, after an enormous
-- charge, may be too small already.
function fixed_window.cancel(s, permits, a, b, mark)
  if not s.found or mark ~= format('%.0f@%.0f', s.start, s.epoch) then return false end
  if s.taken == MOST then return false end
  s.taken = s.taken - permits
  return true
end

-- In the present window, or in the last one that a waiting call was granted; the count may exceed the limit.
function fixed_window.charge(s, permits)
  s.taken = min(MOST, s.taken + permits)
end

function fixed_window.remaining(s)
  return (s.start == s.current or s.start <= now) and max(0, s.permits - s.taken) or 0
end

-- A later window that was given back whole still closes those before it.
function fixed_window.reset(s)
  if s.taken > 0 then return fw_start(s, s.index + 1) - now end
  return s.start == s.current and 0 or max(0, s.start - now)
end

function fixed_window.save(s)
  local value = struct.pack('>I7I7I7', s.start, s.taken, s.epoch)
  if slack > 0 or s.start > s.current then value = value .. struct.pack('>I7', now) end
  redis.call('SET', s.key, value, 'PX', millis(fw_start(s, s.index + 1) - now))
end

return fixed_window
