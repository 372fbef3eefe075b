package redisstore

import "github.com/redis/go-redis/v9"

// The transitions, as Redis makes them. A script runs alone on its node, and all its
// keys are in one slot: KEYS[1] is the epoch, and the names of the others begin as
// its name does. The same attempt can send a script twice and gets the same reply,
// so that a request whose reply was lost can be repeated.
//
// ARGV: the epoch, a time in milliseconds in place of Redis' own or nothing, a token
// that the reply repeats, how long calls are kept, and then the arguments of each
// script.
//
// The keys of a part:
//
//	epoch       agreed on by the gateways after the last loss
//	call:ID     the call, a hash
//	key:HASH    the call that a key has started
//	lease:OWNER exists while its process lives
//	owners      processes that have had calls
//	open:OWNER  calls without an outcome
//	due         waiting calls by the time that they expire
//	ended       calls by the time that they ended
//	spare       those of them that may be evicted; spare:P of one principal
//	total       counts of all that is kept; of:P of one principal
//	seeded:RUN  the journals that were restored into an instance
//	reading:J   the attempt to restore journal J that is under way
//	grace       exists while leases may not have been renewed after a loss
const common = `
local base = string.sub(KEYS[1], 1, -6)
local function say(code, rest)
  local reply = {code, ARGV[3]}
  for _, v in ipairs(rest or {}) do reply[#reply + 1] = v end
  return reply
end
local keep = tonumber(ARGV[4])
local now = tonumber(ARGV[2])
if not now then
  local t = redis.call('TIME')
  now = t[1] * 1000 + math.floor(t[2] / 1000)
end
local function plain(n) return string.format('%.0f', n) end
local function at(id) return base .. 'call:' .. id end
local function whole(id) return redis.call('HGETALL', at(id)) end
local function count(p, calls, bytes, spare)
  for _, key in ipairs({base .. 'total', base .. 'of:' .. p}) do
    redis.call('HINCRBY', key, 'calls', calls)
    redis.call('HINCRBY', key, 'bytes', plain(bytes))
    if spare then
      redis.call('HINCRBY', key, 'spare', spare.calls)
      redis.call('HINCRBY', key, 'sparebytes', plain(spare.bytes))
    end
  end
  if calls < 0 and tonumber(redis.call('HGET', base .. 'of:' .. p, 'calls')) <= 0 then
    redis.call('DEL', base .. 'of:' .. p)
  end
end
local function remove(id)
  local f = redis.call('HMGET', at(id), 'p', 'k', 'owner', 'size', 'spare')
  if not f[1] then return end
  redis.call('DEL', at(id))
  if f[2] ~= '' and redis.call('GET', base .. 'key:' .. f[2]) == id then
    redis.call('DEL', base .. 'key:' .. f[2])
  end
  redis.call('SREM', base .. 'open:' .. f[3], id)
  for _, set in ipairs({'due', 'ended', 'spare', 'spare:' .. f[1]}) do
    redis.call('ZREM', base .. set, id)
  end
  local size = tonumber(f[4])
  count(f[1], -1, -size, f[5] and {calls = -1, bytes = -size})
end
local function over(id)
  local f = redis.call('HMGET', at(id), 'step', 'ended')
  return f[1] == 'ended' and now - tonumber(f[2]) >= keep
end
local function load(key)
  local f = redis.call('HMGET', key, 'calls', 'bytes', 'spare', 'sparebytes')
  for i = 1, 4 do f[i] = tonumber(f[i] or 0) end
  return {calls = f[1], bytes = f[2], spare = f[3], sparebytes = f[4]}
end
-- full reports whether the calls that must be kept fill the bounds: ARGV[n] and the
-- three after it, calls and bytes of all and of one principal.
local function full(p, n)
  for i, key in ipairs({base .. 'total', base .. 'of:' .. p}) do
    local l = load(key)
    if l.calls - l.spare >= tonumber(ARGV[n + 2 * i - 2]) or l.bytes - l.sparebytes >= tonumber(ARGV[n + 2 * i - 1]) then
      return true
    end
  end
  return false
end
local function excess(key, more, n)
  local l = load(key)
  return l.spare > 0 and (l.calls + more > tonumber(ARGV[n]) or l.bytes > tonumber(ARGV[n + 1]))
end
-- makeroom evicts a few calls at once.
local function makeroom(p, more, n)
  for _ = 1, 32 do
    local from
    if excess(base .. 'of:' .. p, more, n + 2) then from = base .. 'spare:' .. p
    elseif excess(base .. 'total', more, n) then from = base .. 'spare'
    else return end
    local oldest = redis.call('ZRANGE', from, 0, 0)[1]
    if not oldest then return end
    remove(oldest)
  end
end
local function own(owner, id)
  redis.call('SADD', base .. 'owners', owner)
  redis.call('SADD', base .. 'open:' .. owner, id)
end
`

// epochCheck refuses if Redis was emptied, or if the other gateways have agreed on an
// epoch after a loss without this process.
const epochCheck = `
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return say('epoch') end
`

// useScript is a script that may dispatch a call, or take that back.
func useScript(body string) *redis.Script { return epochScript(useCommon + body) }

func epochScript(body string) *redis.Script { return redis.NewScript(common + epochCheck + body) }

// openScript: id, k, p, owner, lease, size, bounds (4), then the fields.
var openScript = epochScript(`
local id, k, p, owner = ARGV[5], ARGV[6], ARGV[7], ARGV[8]
local holder = redis.call('GET', base .. 'key:' .. k)
if holder and holder ~= id and over(holder) then
  remove(holder)
  holder = false
end
if holder and holder ~= id then
  local call = whole(holder)
  if #call == 0 then return say('broken') end
  return say('prior', call)
end
if redis.call('EXISTS', at(id)) == 1 then
  local f = redis.call('HMGET', at(id), 'owner', 'step')
  if f[1] == owner and f[2] == 'opened' then return say('ok') end
  return say('dispatched')
end
if holder then return say('broken') end
if full(p, 11) then return say('full') end
makeroom(p, 1, 11)
redis.call('SET', base .. 'key:' .. k, id)
redis.call('HSET', at(id), 'step', 'opened', 'owner', owner, 'k', k, 'p', p, 'size', ARGV[10], 'opened', plain(now), unpack(ARGV, 15))
count(p, 1, tonumber(ARGV[10]))
own(owner, id)
redis.call('SET', base .. 'lease:' .. owner, '1', 'PX', ARGV[9])
return say('ok')
`)

// dispatchScript: id, k, p, owner, lease, size, bounds (4), nonce, size of the
// task, ids of the approvals and grants that it uses, those that it uses where they are left, then the fields.
var dispatchScript = useScript(`
local id, k, p, owner = ARGV[5], ARGV[6], ARGV[7], ARGV[8]
local f = redis.call('HMGET', at(id), 'step', 'owner', 'nonce')
if f[1] and f[1] ~= 'opened' then
  if f[1] == 'dispatched' and f[2] == owner and f[3] == ARGV[15] then return say('ok') end
  return say(f[1] == 'ended' and 'ended' or 'dispatched')
end
local refused = unusable(ARGV[17])
if refused then return say(refused) end
if k ~= '' then
  if not f[1] or f[2] ~= owner or redis.call('GET', base .. 'key:' .. k) ~= id then return say('lost') end
else
  if full(p, 11) then return say('full') end
  makeroom(p, 1, 11)
  redis.call('HSET', at(id), 'k', '', 'p', p, 'size', ARGV[10], 'opened', plain(now))
  count(p, 1, tonumber(ARGV[10]))
end
redis.call('HSET', at(id), 'step', 'dispatched', 'owner', owner, 'nonce', ARGV[15], 'attempts', '1', unpack(ARGV, 19))
local using = ARGV[17] .. left(ARGV[18])
if using ~= '' then
  redis.call('HSET', at(id), 'using', using)
  use(using, id)
end
redis.call('HINCRBY', at(id), 'size', ARGV[16])
count(p, 0, tonumber(ARGV[16]))
own(owner, id)
redis.call('SET', base .. 'lease:' .. owner, '1', 'PX', ARGV[9])
return say('ok')
`)

// retractScript: id, owner, nonce. It removes a call that its process has opened, or
// has dispatched without getting the reply.
var retractScript = useScript(`
local f = redis.call('HMGET', at(ARGV[5]), 'owner', 'step', 'nonce')
if f[1] == ARGV[6] and (f[2] == 'opened' or f[2] == 'dispatched' and f[3] == ARGV[7] and f[3] ~= '') then
  release(ARGV[5])
  remove(ARGV[5])
end
return say('ok')
`)

// orphanScript: id, owner. It removes a call that its process was refused, and leaves
// one that was taken over from another.
var orphanScript = useScript(`
local f = redis.call('HMGET', at(ARGV[5]), 'owner', 'step', 'taken')
if f[1] == ARGV[6] and (f[2] == 'opened' or f[2] == 'dispatched') and not f[3] then
  release(ARGV[5])
  remove(ARGV[5])
end
return say('ok')
`)

// redispatchScript: id, owner, nonce.
var redispatchScript = epochScript(`
local f = redis.call('HMGET', at(ARGV[5]), 'step', 'owner', 'effect', 'again')
if not f[1] then return say('absent') end
if f[1] == 'ended' then return say('ended') end
if f[1] == 'opened' then return say('early') end
if f[2] ~= ARGV[6] then return say('lost') end
if f[1] ~= 'dispatched' or f[3] ~= 'read' and f[3] ~= 'idempotent' then return say('dispatched') end
if f[4] ~= ARGV[7] then
  redis.call('HSET', at(ARGV[5]), 'again', ARGV[7])
  redis.call('HINCRBY', at(ARGV[5]), 'attempts', 1)
end
return say('ok', whole(ARGV[5]))
`)

// deferScript: id, owner, until.
var deferScript = epochScript(`
local id = ARGV[5]
local f = redis.call('HMGET', at(id), 'step', 'owner', 'until')
if not f[1] then return say('absent') end
if f[1] == 'ended' then return say('ended') end
if f[1] == 'opened' then return say('early') end
if f[2] ~= ARGV[6] then return say('lost') end
if f[1] == 'waiting' then
  if f[3] ~= ARGV[7] then return say('dispatched') end
  return say('ok', whole(id))
end
redis.call('HSET', at(id), 'step', 'waiting', 'until', ARGV[7])
redis.call('ZADD', base .. 'due', ARGV[7], id)
return say('ok', whole(id))
`)

// metadataScript: id, the step at which the call must be, the metadata to be replaced, the
// new ones.
var metadataScript = epochScript(`
local id = ARGV[5]
local f = redis.call('HMGET', at(id), 'step', 'p', 'size', 'spare', 'note')
if not f[1] then return say('absent') end
if f[1] ~= ARGV[6] then return say(f[1] == 'ended' and 'ended' or 'early') end
local old = f[5] or ''
if old ~= ARGV[7] and old ~= ARGV[8] then return say('changed') end
local more = #ARGV[8] - #old
redis.call('HSET', at(id), 'note', ARGV[8], 'size', plain(tonumber(f[3]) + more))
count(f[2], 0, more, f[4] and {calls = 0, bytes = more})
return say('ok', whole(id))
`)

// finishScript: id, attempt, state, status, result, delivered, bounds (4), metadata.
var finishScript = useScript(`
local id = ARGV[5]
local f = redis.call('HMGET', at(id), 'step', 'attempt', 'owner', 'p', 'k', 'size', 'arguments', 'note')
if not f[1] then return say('absent') end
if f[1] == 'opened' then return say('early') end
if f[1] == 'ended' then
  if f[2] ~= ARGV[6] then return say('ended', whole(id)) end
  -- An attempt that did not get the reply has handed nothing over.
  if ARGV[10] == '' and redis.call('HGET', at(id), 'delivered') == ARGV[6] then redis.call('HDEL', at(id), 'delivered') end
  return say('ok', whole(id))
end
local size = tonumber(f[6]) - #(f[7] or '') + #ARGV[9] - #(f[8] or '') + #ARGV[15]
redis.call('HDEL', at(id), 'arguments', 'note')
for used in string.gmatch(redis.call('HGET', at(id), 'using') or '', '%S+') do redis.call('HDEL', ask(used), 'args') end
if ARGV[15] ~= '' then redis.call('HSET', at(id), 'note', ARGV[15]) end
redis.call('HSET', at(id), 'step', 'ended', 'attempt', ARGV[6], 'state', ARGV[7], 'status', ARGV[8], 'result', ARGV[9], 'ended', plain(now), 'size', plain(size))
if ARGV[10] ~= '' then redis.call('HSET', at(id), 'delivered', ARGV[10]) end
redis.call('ZREM', base .. 'due', id)
redis.call('SREM', base .. 'open:' .. f[3], id)
redis.call('ZADD', base .. 'ended', plain(now), id)
if f[5] == '' then
  redis.call('HSET', at(id), 'spare', '1')
  redis.call('ZADD', base .. 'spare', plain(now), id)
  redis.call('ZADD', base .. 'spare:' .. f[4], plain(now), id)
  count(f[4], 0, size - tonumber(f[6]), {calls = 1, bytes = size})
else
  count(f[4], 0, size - tonumber(f[6]))
end
local call = whole(id)
makeroom(f[4], 0, 11)
return say('ok', call)
`)

// deliverScript: id, principal, nonce.
var deliverScript = epochScript(`
local f = redis.call('HMGET', at(ARGV[5]), 'step', 'principal', 'delivered')
if not f[1] or f[2] ~= ARGV[6] or over(ARGV[5]) then return say('absent') end
if f[1] ~= 'ended' then return say('early') end
if f[3] and f[3] ~= ARGV[7] then return say('delivered') end
redis.call('HSET', at(ARGV[5]), 'delivered', ARGV[7])
return say('ok')
`)

// getScript: id.
var getScript = epochScript(`
if over(ARGV[5]) then return say('absent') end
local call = whole(ARGV[5])
if #call == 0 then return say('absent') end
return say('ok', call)
`)

// stepsScript: ids. It returns the step of each, and whether it has metadata; nothing
// for a call that is not there.
var stepsScript = epochScript(`
local steps = {}
for i = 5, #ARGV do
  local f = redis.call('HMGET', at(ARGV[i]), 'step', 'note')
  steps[#steps + 1] = (f[1] or '') .. ((f[2] or '') ~= '' and ' noted' or '')
end
return say('ok', steps)
`)

// dueScript: limit.
var dueScript = epochScript(`
return say('ok', redis.call('ZRANGEBYSCORE', base .. 'due', '-inf', plain(now), 'LIMIT', 0, ARGV[5]))
`)

// sweepScript: limit.
var sweepScript = epochScript(`
local ids = redis.call('ZRANGEBYSCORE', base .. 'ended', '-inf', plain(now - keep), 'LIMIT', 0, ARGV[5])
for _, id in ipairs(ids) do remove(id) end
return say('ok', {plain(#ids)})
`)

// leaseScript: owner, lease.
var leaseScript = epochScript(`
redis.call('SET', base .. 'lease:' .. ARGV[5], '1', 'PX', ARGV[6])
return say('ok')
`)

// takeScript: owner, the part of it that names its journal, limit. It takes over the
// calls of processes whose lease has ended, and of earlier processes with the same
// journal, of which there is one at a time.
var takeScript = epochScript(`
local me, journal, left = ARGV[5], ARGV[6], tonumber(ARGV[7])
local taken, quiet = 0, redis.call('EXISTS', base .. 'grace') == 0
for _, owner in ipairs(redis.call('SMEMBERS', base .. 'owners')) do
  local mine = string.sub(owner, 1, #journal) == journal
  if owner ~= me and left > 0 and (mine or quiet and redis.call('EXISTS', base .. 'lease:' .. owner) == 0) then
    for _, id in ipairs(redis.call('SRANDMEMBER', base .. 'open:' .. owner, left)) do
      left = left - 1
      if redis.call('HGET', at(id), 'step') == 'opened' then
        remove(id)
      else
        redis.call('SREM', base .. 'open:' .. owner, id)
        redis.call('HSET', at(id), 'owner', me, 'taken', '1')
        own(me, id)
        taken = taken + 1
      end
    end
    if redis.call('EXISTS', base .. 'open:' .. owner) == 0 then redis.call('SREM', base .. 'owners', owner) end
  end
end
return say('ok', {plain(taken)})
`)

// unfinishedScript: owner. It returns the calls without an outcome of a process.
var unfinishedScript = epochScript(`
return say('ok', redis.call('SMEMBERS', base .. 'open:' .. ARGV[5]))
`)

// sampleScript: owner, limit. It returns some of them, drawn at random.
var sampleScript = epochScript(`
return say('ok', redis.call('SRANDMEMBER', base .. 'open:' .. ARGV[5], ARGV[6]))
`)
