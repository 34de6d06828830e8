package io.ratelimited.redis.simulation;

import io.ratelimited.redis.simulation.Simulations.Plans;
import java.util.List;

/** Changes of the scripts. */
final class ScriptMutants {

    private static final String PERMIT_MORE = """
        function(...)
          local s, next = shipped(...)
          s.permits = s.permits + 1
          return s, next
        end\
        """;

    private ScriptMutants() {}

    static List<ScriptMutant> all() {
        return List.of(
                ScriptMutant.functions(
                        "whoever asks during a block is blocked longer", Plans.BLOCKS, List.of("block.offend"), """
                        function(s)
                          s.finish = min(s.finish, now)
                          shipped(s)
                        end\
                        """),
                ScriptMutant.functions(
                        "a block is forgotten by the next call", Plans.BLOCKS, List.of("block.save"), "function() end"),
                ScriptMutant.functions(
                        "a block is forgiven as soon as it ends", Plans.BLOCKS, List.of("block.save"), """
                        function(s)
                          local max = s.max
                          s.max = 0
                          shipped(s)
                          s.max = max
                        end\
                        """),
                ScriptMutant.functions(
                        "a block begun by a wait of 0, of a call that would wait if it had a thread",
                        Plans.BLOCKS,
                        List.of("offends"),
                        """
                        function(family, s, call)
                          local tail = call.tail
                          call.tail = ''
                          local offends = shipped(family, s, call)
                          call.tail = tail
                          return offends
                        end\
                        """),
                ScriptMutant.functions(
                        "permits that calls in flight hold are evidence",
                        Plans.BLOCKS,
                        List.of(
                                "virtual_time.charged",
                                "fixed_window.charged",
                                "sliding_window.charged",
                                "sliding_log.charged"),
                        """
                        function(s, charges)
                          local _, lasts = shipped(s, charges)
                          return s, lasts
                        end\
                        """),
                ScriptMutant.functions(
                        "a call in flight is admitted before those that are there are counted",
                        Plans.TINY,
                        List.of("concurrency.decide"),
                        "function(s, permits, ...) return shipped(s, 0, ...) end"),
                ScriptMutant.functions(
                        "calls in flight do not end in Redis",
                        Plans.TINY,
                        List.of("concurrency.cancel"),
                        "function() return false end"),
                ScriptMutant.functions(
                        "a bucket forgets what was taken",
                        Plans.TINY,
                        List.of("virtual_time.decide"),
                        "function(s, permits, a, b, longest) return shipped(s, permits, 0, 0, longest) end"),
                ScriptMutant.commands("the key of a bucket expires before it is full", Plans.TINY, """
                    function(command, key, ...)
                      if command ~= 'SET' or not string.find(key, '~t', 1, true) then
                        return shipped(command, key, ...)
                      end
                      local value, px, millis = ...
                      return shipped(command, key, value, px, string.format('%.0f', millis / 9 + 1))
                    end\
                    """),
                ScriptMutant.functions(
                        "a window of the calendar has one permit more",
                        Plans.TINY,
                        List.of("fixed_window.open"),
                        PERMIT_MORE),
                ScriptMutant.functions(
                        "a sliding window counts one slot less", Plans.TINY, List.of("sliding_window.open"), """
                        function(...)
                          local s, next = shipped(...)
                          s.slots = s.slots - 2
                          return s, next
                        end\
                        """),
                ScriptMutant.functions(
                        "a log has one permit more", Plans.TINY, List.of("sliding_log.open"), PERMIT_MORE),
                ScriptMutant.functions(
                        "a script does not keep what it has charged",
                        Plans.SETTLING,
                        List.of(
                                "virtual_time.charge",
                                "fixed_window.charge",
                                "sliding_window.charge",
                                "sliding_log.charge"),
                        "function() end"),
                ScriptMutant.functions(
                        "a window that is settled for less gets a permit more",
                        Plans.SETTLING,
                        List.of("sliding_window.cancel"),
                        "function(s, permits, ...) return shipped(s, permits + 1, ...) end"),
                ScriptMutant.commands("a log forgets which calls have given permits back", Plans.SETTLING, """
                    function(command, key, ...)
                      local values = shipped(command, key, ...)
                      if command == 'LRANGE' and string.find(key, '~q', 1, true) then
                        for i, value in ipairs(values) do
                          values[i] = string.match(value, '^%d+ %d+ [%d/]+')
                        end
                      end
                      return values
                    end\
                    """),
                ScriptMutant.functions(
                        "a log takes one permit too many from its sum when others leave",
                        Plans.TINY,
                        List.of("sl_leave"),
                        """
                        function(s, ...)
                          local gone = s.gone
                          local more = shipped(s, ...)
                          if s.gone > gone then s.total = max(0, s.total - 1) end
                          return more
                        end\
                        """),
                ScriptMutant.commands("a call under several limits is charged by the last alone", Plans.TINY, """
                    function(command, key, ...)
                      local function caller(name) return name and string.match(name, '{.-}') end
                      local together = #KEYS > 1 and caller(KEYS[1]) == caller(KEYS[2])
                      if command == 'SET' and together and key ~= KEYS[#KEYS] then return { ok = 'OK' } end
                      return shipped(command, key, ...)
                    end\
                    """),
                ScriptMutant.functions(
                        "scripts do not notice that the clock has stepped back",
                        Plans.WIDE,
                        List.of("behind"),
                        "function(written) shipped(written) return false end"),
                ScriptMutant.commands(
                        "a window of the calendar that was taken in advance stays taken when the clock has stepped"
                                + " back",
                        Plans.WIDE,
                        """
                        function(command, key, ...)
                          local value = shipped(command, key, ...)
                          if command == 'GET' and string.find(key, '~f', 1, true) and value and #value == 28 then
                            local start, taken, epoch, written = struct.unpack('>I7I7I7I7', value)
                            if written < start and written > now + slack then written = now end
                            value = struct.pack('>I7I7I7I7', start, taken, epoch, written)
                          end
                          return value
                        end\
                        """),
                ScriptMutant.functions(
                        "a call that one limit refuses is charged by all",
                        Plans.TINY,
                        List.of(
                                "virtual_time.decide",
                                "fixed_window.decide",
                                "sliding_window.decide",
                                "sliding_log.decide"),
                        """
                        (function()
                          local take, marks = nil, {}
                          return function(s, permits, a, ...)
                            if not take then
                              take = family.take
                              family.take = function(s) return marks[s] end
                            end
                            local outcome = shipped(s, permits, a, ...)
                            if op == 'take' then
                              marks[s], s.changed = take(s, permits, a), true
                            end
                            return outcome
                          end
                        end)()\
                        """),
                ScriptMutant.functions(
                        "a change is made on whatever is there", Plans.FLEET, List.of("read_entry"), """
                        function(field)
                          local version, ending = shipped(field)
                          return ARGV[2] == 'write' and version and tonumber(ARGV[5]) or version, ending
                        end\
                        """),
                ScriptMutant.functions(
                        "an older change is written back over a newer one", Plans.FLEET, List.of("read_entry"), """
                        function(field)
                          if ARGV[2] ~= 'restore' then return shipped(field) end
                        end\
                        """),
                ScriptMutant.functions(
                        "a node takes the last alone of the writes that it lacks",
                        Plans.FLEET,
                        List.of("written_since"),
                        """
                        function(version)
                          local reply = shipped(version)
                          for i = 8, reply and #reply or 0 do reply[i] = nil end
                          return reply
                        end\
                        """),
                ScriptMutant.functions(
                        "a node whose version Redis has lost takes the latest writes alone",
                        Plans.FLEET,
                        List.of("written_since"),
                        """
                        function(version)
                          local reply = shipped(version)
                          return reply or { now, position, '', 1 }
                        end\
                        """),
                ScriptMutant.functions("a change does not move the version", Plans.FLEET, List.of("put_entry"), """
                        function(...)
                          local before = position
                          shipped(...)
                          if before > 0 then redis.call('HSET', record, 'version', whole(before)) end
                        end\
                        """));
    }
}
