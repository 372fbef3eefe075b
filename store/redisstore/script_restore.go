package redisstore

import "github.com/redis/go-redis/v9"

// The scripts that restore the journals after a loss. They run before there is an
// epoch.

// restoreScript: id, k, p, size, rank of the step, attempts, then the fields. It writes a call
// of a journal, unless Redis has this step of it, or a later one: then it keeps the larger number
// of attempts.
var restoreScript = redis.NewScript(common + `
local id, k, p, size = ARGV[5], ARGV[6], ARGV[7], tonumber(ARGV[8])
local ranks = {opened = 1, dispatched = 2, waiting = 3, ended = 4}
local known = redis.call('HGET', at(id), 'step')
local attempts = math.max(tonumber(ARGV[10]), tonumber(redis.call('HGET', at(id), 'attempts') or 0))
if known and ranks[known] >= tonumber(ARGV[9]) then
  redis.call('HSET', at(id), 'attempts', plain(attempts))
  return say('ok')
end
if known then remove(id) end
redis.call('HSET', at(id), 'k', k, 'p', p, 'size', ARGV[8], 'attempts', plain(attempts), unpack(ARGV, 11))
local f = redis.call('HMGET', at(id), 'step', 'owner', 'until', 'ended')
local spare
if f[1] == 'ended' then
  redis.call('ZADD', base .. 'ended', f[4], id)
  if k == '' then
    redis.call('HSET', at(id), 'spare', '1')
    redis.call('ZADD', base .. 'spare', f[4], id)
    redis.call('ZADD', base .. 'spare:' .. p, f[4], id)
    spare = {calls = 1, bytes = size}
  end
else
  own(f[2], id)
  if f[1] == 'waiting' then redis.call('ZADD', base .. 'due', f[3], id) end
end
count(p, 1, size, spare)
if k ~= '' then
  local holder = redis.call('GET', base .. 'key:' .. k)
  if not holder or redis.call('HGET', at(holder), 'step') == 'opened' then redis.call('SET', base .. 'key:' .. k, id) end
end
return say('ok')
`)

// beginRestoreScript: journal, attempt. It marks the attempt before the calls of a
// journal are written: if the mark is gone after them, some of them are gone too.
var beginRestoreScript = redis.NewScript(common + `
redis.call('SET', base .. 'reading:' .. ARGV[5], ARGV[6], 'PX', 86400000)
return say('ok')
`)

// agreeEpochScript: the run, a new epoch, the journal that was restored, how many must
// be, lease, the attempt that restored it. It returns the epoch of the run, once there
// is one, and removes the epoch of another run.
var agreeEpochScript = redis.NewScript(common + `
local run = ARGV[5] .. '/'
if redis.call('GET', base .. 'reading:' .. ARGV[7]) ~= ARGV[10] then return say('again') end
local epoch = redis.call('GET', KEYS[1])
if epoch and string.sub(epoch, 1, #run) == run then return say('ok', {epoch}) end
if epoch then redis.call('DEL', KEYS[1]) end
local seeded = base .. 'seeded:' .. ARGV[5]
redis.call('SADD', seeded, ARGV[7])
redis.call('PEXPIRE', seeded, 86400000)
local n = redis.call('SCARD', seeded)
if n < tonumber(ARGV[8]) then return say('waiting', {plain(n)}) end
redis.call('DEL', seeded)
redis.call('SET', base .. 'grace', '1', 'PX', ARGV[9])
redis.call('SET', KEYS[1], ARGV[6])
return say('ok', {ARGV[6]})
`)
