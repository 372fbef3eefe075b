package redisbudget

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/callgate/callgate/internal/redisconn"
	"github.com/callgate/callgate/ratelimit/budget"
	"github.com/callgate/callgate/refusal"
)

// key is the key of a counter in the window that begins at a time. A name that is not the operator's
// stands in it as a digest: a subject may be long, and may hold any byte.
func (l *Limiter) key(c budget.Counter, start time.Time) string {
	sum := sha256.Sum256([]byte(c.Zone + "\x00" + c.Subject))
	return l.prefix + "{budgets}:" + c.Budget + ":" + string(c.Per) + ":" + string(c.Window) + ":" + strconv.FormatInt(start.Unix(), 10) + ":" + hex.EncodeToString(sum[:16])
}

func keysOf(windows []window) []string {
	keys := make([]string, len(windows))
	for i, w := range windows {
		keys[i] = w.key
	}
	return keys
}

// isVerdict reports whether an error is a refusal of a budget.
func isVerdict(err error) bool {
	var refused *refusal.Error
	return errors.As(err, &refused)
}

// run runs a script, and returns the words of its reply between the id and the time. An error of the
// connection, and of Redis, has Redis count as away.
func (l *Limiter) run(ctx context.Context, s *redis.Script, id string, windows []window, args []any) (words []string, now time.Time, err error) {
	caller := ctx
	ctx, cancel := context.WithTimeout(caller, l.options.Wait)
	defer cancel()
	select {
	case l.slots <- struct{}{}:
		defer func() { <-l.slots }()
	case <-ctx.Done():
		return nil, now, errBusy
	}
	at := ""
	if l.options.testTime != nil {
		at = strconv.FormatInt(l.options.testTime().UnixMilli(), 10)
	}
	began := l.options.Clock()
	keys, all := keysOf(windows), append([]any{at, id}, args...)
	reply, err := s.Run(ctx, l.client, keys, all...).Text()
	if cluster, ok := l.client.(*redis.ClusterClient); ok && redisconn.IsReply(err, "MOVED") {
		cluster.ReloadState(ctx) // it has not run
		reply, err = s.Run(ctx, l.client, keys, all...).Text()
	}
	if err != nil {
		if caller.Err() == nil {
			l.loseRedis(err)
		}
		return nil, now, err
	}
	l.findRedis()
	words = strings.Split(reply, " ")
	if len(words) < 2 || words[0] != id || words[1] == "foreign" {
		return nil, now, errForeign
	}
	words = words[1:]
	if strings.HasPrefix(words[0], "window/") {
		return words, now, nil
	}
	ms, err := strconv.ParseInt(words[len(words)-1], 10, 64)
	if err != nil || len(words) != len(windows)+2 {
		return nil, now, errForeign
	}
	now = time.UnixMilli(ms)
	l.skew.Store(int64(now.Sub(began)))
	return words[:len(words)-1], now, nil
}

// cut divides a word at its slash.
func cut(word string) (name, figure string) {
	name, figure, _ = strings.Cut(word, "/")
	return name, figure
}

// readStates reads the states of so many counters.
func readStates(words []string, n int) ([]seen, error) {
	if len(words) != n {
		return nil, errForeign
	}
	all := make([]seen, n)
	for i, word := range words {
		if word == "-" {
			continue
		}
		parts := strings.Split(word, "/")
		if len(parts) != 6 || parts[0] == "" {
			return nil, errForeign
		}
		s := &all[i]
		var err error
		s.epoch = parts[0]
		if s.n, err = strconv.ParseUint(parts[1], 10, 64); err != nil {
			return nil, errForeign
		}
		for j, into := range []*int64{&s.spent.Tokens, &s.spent.Micros, &s.open.Tokens, &s.open.Micros} {
			if *into, err = strconv.ParseInt(parts[2+j], 10, 64); err != nil || *into < 0 || *into > budget.Most {
				return nil, errForeign
			}
		}
	}
	return all, nil
}

// note takes over the states of counters from a reply.
func (l *Limiter) note(windows []window, words []string) error {
	states, err := readStates(words, len(windows))
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, now := range states {
		if now.epoch == "" {
			continue
		}
		s := l.counter(windows[i])
		if s == nil || s.epoch == now.epoch && s.n >= now.n {
			continue // replies may come out of their order
		}
		s.epoch, s.n, s.spent = now.epoch, now.n, now.spent
	}
	return nil
}
