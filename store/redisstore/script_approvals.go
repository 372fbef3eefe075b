package redisstore

import "github.com/redis/go-redis/v9"

// Approvals and grants, in the part of the principal who asks, so that a dispatch and the
// approvals that it uses are in one script. A change of an approval is made by this process
// and written only if nobody has changed the approval meanwhile.
//
//	ask:ID       an approval, a hash
//	asknews      those that have changed, by the time from which they may be told of
//	asks         those without an end, by the time that they close; asks:P of one principal
//	askover      the others, by the time from which they are kept for Retention
//	askof:DIGEST those that Consents may return
//	grant:ID     a grant, a hash
//	grants       by the time that they end
//	grantof:KEY  ids of grants
//
// An approval that was used has the field ran, and its record is as it was before.
const approvalCommon = `
local function ask(id) return base .. 'ask:' .. id end
local function alive(set, id)
  local score = redis.call('ZSCORE', base .. set, id)
  return score and tonumber(score) > now
end
local function fields(id, into)
  local f = redis.call('HMGET', ask(id), 'rec', 'args', 'ran', 'ranat', 'rev')
  if not f[1] then return into end
  for i = 1, 5 do into[#into + 1] = f[i] or '' end
  into[#into + 1] = plain(now)
  return into
end
local function index(id, closes, over, stands)
  local f = redis.call('HMGET', ask(id), 'p', 'digest')
  if over == '' then
    redis.call('ZADD', base .. 'asks', closes, id)
    redis.call('ZADD', base .. 'asks:' .. f[1], closes, id)
    redis.call('ZREM', base .. 'askover', id)
  else
    redis.call('ZREM', base .. 'asks', id)
    redis.call('ZREM', base .. 'asks:' .. f[1], id)
    redis.call('ZADD', base .. 'askover', over, id)
  end
  if over == '' or stands ~= '' then redis.call('SADD', base .. 'askof:' .. f[2], id)
  else redis.call('SREM', base .. 'askof:' .. f[2], id) end
  local held = tonumber(redis.call('HGET', ask(id), 'held') or 0)
  if held > now then redis.call('ZADD', base .. 'asknews', plain(held), id)
  else redis.call('ZADD', base .. 'asknews', plain(now), id) end
end
`

// useCommon are the parts of dispatches that use approvals.
const useCommon = approvalCommon + `
local function unusable(using)
  for id in string.gmatch(using, '%S+') do
    if string.sub(id, 1, 6) == 'grant_' then
      if not alive('grants', id) then return 'over' end
    else
      if redis.call('HEXISTS', ask(id), 'ran') == 1 then return 'used' end
      if not alive('asks', id) then return 'over' end
    end
  end
end
local function left(ids)
  local found = ''
  for id in string.gmatch(ids, '%S+') do
    if redis.call('HEXISTS', ask(id), 'ran') == 0 and alive('asks', id) then found = found .. ' ' .. id end
  end
  return found
end
local function use(using, call)
  for id in string.gmatch(using, '%S+') do
    if string.sub(id, 1, 6) ~= 'grant_' then
      redis.call('HSET', ask(id), 'ran', call, 'ranat', plain(now))
      redis.call('HINCRBY', ask(id), 'rev', 1)
      index(id, '', redis.call('HGET', ask(id), 'closes'), '')
    end
  end
end
local function release(call)
  for id in string.gmatch(redis.call('HGET', at(call), 'using') or '', '%S+') do
    if redis.call('HGET', ask(id), 'ran') == call then
      redis.call('HDEL', ask(id), 'ran', 'ranat')
      if redis.call('HEXISTS', ask(id), 'rec') == 1 then
        redis.call('HINCRBY', ask(id), 'rev', 1)
        index(id, redis.call('HGET', ask(id), 'closes'), '', '')
      end
    end
  end
end
`

func approvalScript(body string) *redis.Script { return epochScript(approvalCommon + body) }

// askScript: id, record, arguments, p, digest, key, closes, bounds (2), revision. It returns
// the approval that is kept, or the one that answers it.
var askScript = approvalScript(`
local id, p, digest = ARGV[5], ARGV[8], ARGV[9]
if redis.call('HEXISTS', ask(id), 'rec') == 1 then return say('ok', fields(id, {})) end
local answer
for _, other in ipairs(redis.call('SMEMBERS', base .. 'askof:' .. digest)) do
  local f = redis.call('HMGET', ask(other), 'key', 'stands')
  if f[2] and f[2] ~= '' and tonumber(f[2]) > now then return say('ok', fields(other, {})) end
  if f[1] == ARGV[10] and alive('asks', other) then answer = other end
end
if answer then return say('ok', fields(answer, {})) end
local live = '(' .. plain(now)
if redis.call('ZCOUNT', base .. 'asks', live, '+inf') >= tonumber(ARGV[12]) or redis.call('ZCOUNT', base .. 'asks:' .. p, live, '+inf') >= tonumber(ARGV[13]) then
  return say('full')
end
redis.call('HSET', ask(id), 'rec', ARGV[6], 'args', ARGV[7], 'p', p, 'digest', digest, 'key', ARGV[10], 'closes', ARGV[11], 'rev', ARGV[14])
index(id, ARGV[11], '', '')
return say('ok', fields(id, {}))
`)

// changeBody: id, revision before, record, revision, closes, over (empty: it has no end),
// until when it stands as a denial (empty: it does not).
const changeBody = `
local id = ARGV[5]
local f = redis.call('HMGET', ask(id), 'rec', 'rev')
if not f[1] then return say('absent') end
if f[2] == ARGV[8] and f[1] == ARGV[7] then return say('ok') end
if f[2] ~= ARGV[6] or redis.call('HEXISTS', ask(id), 'ran') == 1 then return say('changed') end
redis.call('HSET', ask(id), 'rec', ARGV[7], 'rev', ARGV[8], 'closes', ARGV[9], 'stands', ARGV[11])
if ARGV[10] ~= '' then redis.call('HDEL', ask(id), 'args') end
index(id, ARGV[9], ARGV[10], ARGV[11])
return say('ok')
`

var changeScript = approvalScript(changeBody)

// approvalsScript: ids. It returns those that are there.
var approvalsScript = approvalScript(`
local found = {}
for i = 5, #ARGV do found = fields(ARGV[i], found) end
return say('ok', found)
`)

// revisionsScript: ids. It returns the revision of each; nothing for one that is not there.
var revisionsScript = approvalScript(`
local revisions = {}
for i = 5, #ARGV do revisions[#revisions + 1] = redis.call('HGET', ask(ARGV[i]), 'rev') or '' end
return say('ok', revisions)
`)

// consentsScript: digest, keys of grants. It returns the number of grants, the grants, and
// the approvals.
var consentsScript = approvalScript(`
local found = {}
for i = 6, #ARGV do
  for _, id in ipairs(redis.call('SMEMBERS', base .. 'grantof:' .. ARGV[i])) do
    if alive('grants', id) then found[#found + 1] = redis.call('HGET', base .. 'grant:' .. id, 'rec') end
  end
end
table.insert(found, 1, plain(#found))
for _, id in ipairs(redis.call('SMEMBERS', base .. 'askof:' .. ARGV[5])) do
  local stands = redis.call('HGET', ask(id), 'stands')
  if alive('asks', id) or stands and stands ~= '' and tonumber(stands) > now then found = fields(id, found) end
end
return say('ok', found)
`)

// approvalIDsScript: whether only live ones. lapsedScript: limit.
var (
	approvalIDsScript = approvalScript(`
if ARGV[5] == '1' then return say('ok', redis.call('ZRANGEBYSCORE', base .. 'asks', '(' .. plain(now), '+inf')) end
local ids = redis.call('ZRANGE', base .. 'asks', 0, -1)
for _, id in ipairs(redis.call('ZRANGEBYSCORE', base .. 'askover', '(' .. plain(now - keep), '+inf')) do ids[#ids + 1] = id end
return say('ok', ids)
`)
	lapsedScript = approvalScript(`
local found = {}
for _, id in ipairs(redis.call('ZRANGEBYSCORE', base .. 'asks', '-inf', plain(now), 'LIMIT', 0, ARGV[5])) do found = fields(id, found) end
return say('ok', found)
`)
)

// sweepApprovalsScript: limit.
var sweepApprovalsScript = approvalScript(`
local n, limit = 0, tonumber(ARGV[5])
for _, set in ipairs({'askover', 'asks'}) do
  for _, id in ipairs(redis.call('ZRANGEBYSCORE', base .. set, '-inf', plain(now - keep), 'LIMIT', 0, limit - n)) do
    local f = redis.call('HMGET', ask(id), 'p', 'digest')
    redis.call('ZREM', base .. set, id)
    if f[1] then
      redis.call('ZREM', base .. 'asks:' .. f[1], id)
      redis.call('SREM', base .. 'askof:' .. f[2], id)
    end
    redis.call('ZREM', base .. 'asknews', id)
    redis.call('DEL', ask(id))
    n = n + 1
  end
end
for _, id in ipairs(redis.call('ZRANGEBYSCORE', base .. 'grants', '-inf', plain(now), 'LIMIT', 0, limit - n)) do
  redis.call('SREM', base .. 'grantof:' .. (redis.call('HGET', base .. 'grant:' .. id, 'key') or ''), id)
  redis.call('ZREM', base .. 'grants', id)
  redis.call('DEL', base .. 'grant:' .. id)
  n = n + 1
end
return say('ok', {plain(n)})
`)

// addGrantScript: id, record, key, until, bound.
var addGrantScript = approvalScript(`
local id = ARGV[5]
if redis.call('ZSCORE', base .. 'grants', id) then return say('ok') end
if redis.call('ZCARD', base .. 'grants') >= tonumber(ARGV[9]) then return say('full') end
redis.call('HSET', base .. 'grant:' .. id, 'rec', ARGV[6], 'key', ARGV[7])
redis.call('ZADD', base .. 'grants', ARGV[8], id)
redis.call('SADD', base .. 'grantof:' .. ARGV[7], id)
return say('ok')
`)

// liveApprovalsScript returns how many grants are live, and the ids and revisions of the live
// approvals.
var liveApprovalsScript = approvalScript(`
local live = '(' .. plain(now)
local found = {plain(redis.call('ZCOUNT', base .. 'grants', live, '+inf'))}
for _, id in ipairs(redis.call('ZRANGEBYSCORE', base .. 'asks', live, '+inf')) do
  found[#found + 1] = id
  found[#found + 1] = redis.call('HGET', ask(id), 'rev') or '0'
end
return say('ok', found)
`)

// grantsScript returns all live grants.
var grantsScript = approvalScript(`
local found = {}
for _, id in ipairs(redis.call('ZRANGEBYSCORE', base .. 'grants', '(' .. plain(now), '+inf')) do
  found[#found + 1] = redis.call('HGET', base .. 'grant:' .. id, 'rec')
end
return say('ok', found)
`)

// grantScript: id. revokeGrantScript: id. A revoked grant is gone when the script is repeated.
var (
	grantScript = approvalScript(`
local rec = redis.call('HGET', base .. 'grant:' .. ARGV[5], 'rec')
if not rec then return say('absent') end
return say('ok', {rec})
`)
	revokeGrantScript = approvalScript(`
local key = redis.call('HGET', base .. 'grant:' .. ARGV[5], 'key')
if key then redis.call('SREM', base .. 'grantof:' .. key, ARGV[5]) end
redis.call('ZREM', base .. 'grants', ARGV[5])
redis.call('DEL', base .. 'grant:' .. ARGV[5])
return say('ok')
`)
)

// The scripts that restore approvals after a loss. They run before there is an epoch.

// restoreApprovalScript: id, record, arguments, p, digest, key, closes, over, stands,
// revision. It writes an approval of a journal; if Redis has it, it returns that.
var restoreApprovalScript = redis.NewScript(common + approvalCommon + `
local id = ARGV[5]
if redis.call('HEXISTS', ask(id), 'rec') == 1 then return say('ok', fields(id, {})) end
redis.call('HSET', ask(id), 'rec', ARGV[6], 'p', ARGV[8], 'digest', ARGV[9], 'key', ARGV[10], 'closes', ARGV[11], 'stands', ARGV[13], 'rev', ARGV[14])
if ARGV[7] ~= '' then redis.call('HSET', ask(id), 'args', ARGV[7]) end
if redis.call('HEXISTS', ask(id), 'ran') == 1 then index(id, '', ARGV[11], '')
else index(id, ARGV[11], ARGV[12], ARGV[13]) end
return say('ok')
`)

var restoreChangeScript = redis.NewScript(common + approvalCommon + changeBody)

// restoreUseScript: call, ids of approvals. It marks approvals that a call of a journal has
// used, also those that are not restored yet.
var restoreUseScript = redis.NewScript(common + approvalCommon + `
for i = 6, #ARGV do
  local id = ARGV[i]
  if redis.call('HEXISTS', ask(id), 'ran') == 0 then
    redis.call('HSET', ask(id), 'ran', ARGV[5], 'ranat', plain(now))
    if redis.call('HEXISTS', ask(id), 'rec') == 1 then
      redis.call('HINCRBY', ask(id), 'rev', 1)
      index(id, '', redis.call('HGET', ask(id), 'closes'), '')
    else
      redis.call('ZADD', base .. 'askover', plain(now), id)
    end
  end
end
return say('ok')
`)
