package redisstore

// Which approvals have changed, and are to be told of. Of such an approval the hash has, beside
// its record: claim and held, the name of a claim and until when nobody else may claim it; tries,
// how often it was put off; told:STATE for each state that was told of.

// claimNoticesScript: limit, lease in milliseconds, the name of the claim. It returns of each
// approval its fields, without the arguments, what was told of it, and how often it was put off.
var claimNoticesScript = approvalScript(`
local found, held = {}, plain(now + tonumber(ARGV[6]))
for _, id in ipairs(redis.call('ZRANGEBYSCORE', base .. 'asknews', '-inf', plain(now), 'LIMIT', 0, ARGV[5])) do
  if fields(id, found) then
    found[#found - 4] = ''
    local told = {}
    for _, s in ipairs({'waiting', 'approved', 'used', 'denied', 'expired', 'withdrawn'}) do
      if redis.call('HEXISTS', ask(id), 'told:' .. s) == 1 then told[#told + 1] = s end
    end
    found[#found + 1] = table.concat(told, ' ')
    found[#found + 1] = redis.call('HGET', ask(id), 'tries') or '0'
    redis.call('HSET', ask(id), 'claim', ARGV[7], 'held', held)
    redis.call('ZADD', base .. 'asknews', held, id)
  else redis.call('ZREM', base .. 'asknews', id) end
end
return say('ok', found)
`)

// settleNoticeScript: id, the name of the claim, the revision that was claimed, after how many
// milliseconds it is due again (0: once it changes), states that were told of.
var settleNoticeScript = approvalScript(`
local id = ARGV[5]
local f = redis.call('HMGET', ask(id), 'rec', 'claim', 'rev')
if not f[1] then return say('absent') end
for i = 9, #ARGV do redis.call('HSET', ask(id), 'told:' .. ARGV[i], '1') end
if f[2] ~= ARGV[6] then return say('ok') end
redis.call('HDEL', ask(id), 'claim', 'held')
if ARGV[8] ~= '0' then
  redis.call('ZADD', base .. 'asknews', plain(now + tonumber(ARGV[8])), id)
  redis.call('HINCRBY', ask(id), 'tries', 1)
elseif f[3] ~= ARGV[7] then
  redis.call('ZADD', base .. 'asknews', plain(now), id)
else
  redis.call('ZREM', base .. 'asknews', id)
  redis.call('HDEL', ask(id), 'tries')
end
return say('ok')
`)
