package store

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// tend keeps the link: it renews the lease, by which it sees that Redis has lost
// something though nobody asks, gives back what is to be given back, or has come back
// though it was, looks at what is watched, and looks for Redis while it is away.
func (r *Redis) tend() {
	beat := time.NewTicker(min(r.seams.lease/3, time.Second))
	defer beat.Stop()
	look := time.NewTicker(lookAgain)
	defer look.Stop()
	ready := r.phase.Load().link != nil
	for {
		select {
		case <-r.ctx.Done():
			return
		case <-r.lost:
			ready = r.changed(ready)
			r.again()
		case <-beat.C:
			r.beat()
			r.returnStrays()
		case <-look.C:
			if r.phase.Load().link == nil {
				r.again()
			}
			r.returnOrphans()
			r.lookAtWatched()
		}
		ready = r.changed(ready)
	}
}

// changed tells who wants to know.
func (r *Redis) changed(before bool) (now bool) {
	p := r.phase.Load()
	if now = p.link != nil; now != before && r.options.OnChange != nil {
		r.options.OnChange(now, p.cause)
	}
	return now
}

// again tries to reach Redis, and remembers why it could not.
func (r *Redis) again() {
	if r.phase.Load().link != nil {
		return
	}
	if err := r.reach(r.ctx); err != nil {
		r.phase.Store(&phase{cause: err})
	}
}

// reachWait bounds one try, but for the reading in of a journal.
const reachWait = 2 * time.Second

// reach makes a link, and makes sure that Redis holds what this process knows.
func (r *Redis) reach(ctx context.Context) error {
	l, err := r.options.dial(r.seams.waits)
	if err != nil {
		return err
	}
	if err := r.meet(ctx, l); err != nil {
		l.end()
		return operator(err)
	}
	r.phase.Store(&phase{link: l})
	r.beat()
	return nil
}

func (r *Redis) meet(ctx context.Context, l *link) error {
	within, cancel := context.WithTimeout(ctx, reachWait)
	err := l.inspect(within, r.prefix, r.seams.standIn)
	cancel()
	if err != nil {
		return err
	}
	unread := false
	for i := range l.parts {
		p := &l.parts[i]
		within, cancel := context.WithTimeout(ctx, reachWait)
		epoch, err := p.client.Get(within, p.epochKey).Result()
		cancel()
		if err != nil && !errors.Is(err, redis.Nil) {
			return err
		}
		known, err := r.journal.seededInto(p.epochKey)
		if err != nil {
			return err
		}
		if epoch == "" || epoch != known || !strings.HasPrefix(epoch, p.run+"/") {
			unread = true
		} else {
			p.epoch = epoch
		}
	}
	if !unread {
		return nil
	}
	attempt := rand.Text()
	if err := r.seed(ctx, l, attempt); err != nil {
		return err
	}
	for i := range l.parts {
		if l.parts[i].epoch == "" {
			if err := r.agree(ctx, &l.parts[i], attempt); err != nil {
				return err
			}
		}
	}
	return r.unchanged(ctx, l)
}

// unchanged makes sure that each node is the instance that it was when the link was
// opened. One that has followed another since may have lost what was read in.
func (r *Redis) unchanged(ctx context.Context, l *link) error {
	ctx, cancel := context.WithTimeout(ctx, reachWait)
	defer cancel()
	seen := map[*redis.Client]bool{}
	for i := range l.parts {
		p := &l.parts[i]
		if seen[p.client] {
			continue
		}
		seen[p.client] = true
		run, history, err := instance(ctx, p.client, r.seams.standIn)
		if err != nil {
			return err
		}
		if run+history != p.run {
			return errHistory
		}
	}
	return nil
}

// seedAtOnce is how many calls are read in with one round.
const seedAtOnce = 128

// seed reads the journal in, at every place whose epoch is not known. A dispatch that
// is under way may not stand in the journal yet: it is refused.
func (r *Redis) seed(ctx context.Context, l *link, attempt string) error {
	r.readings.Add(1)
	for i := range l.parts {
		if p := &l.parts[i]; p.epoch == "" {
			if code, _, err := r.question(ctx, p, 0, readScript, []any{r.journal.identity, attempt}); err != nil || code != "ok" {
				return cmp.Or(err, errReply)
			}
		}
	}
	for after := ""; ; {
		calls, last, err := r.journal.page(after, seedAtOnce, r.now())
		if err != nil {
			return err
		}
		for i := range calls {
			c := &calls[i]
			p := &l.parts[l.partOf(c.Scope.Principal)]
			if p.epoch != "" {
				continue
			}
			if err := r.restore(ctx, p, c); err != nil {
				return err
			}
		}
		if last == "" {
			return nil
		}
		after = last
	}
}

// restore puts a call of the journal in, unless Redis knows of a later step.
func (r *Redis) restore(ctx context.Context, p *part, c *Call) error {
	key, principal := hashes(c)
	args := append([]any{c.ID, key, principal, c.size(), c.Step.rank()}, all(c)...)
	code, _, err := r.question(ctx, p, 0, seedScript, args)
	if err == nil && code != "ok" {
		err = errReply
	}
	return err
}

// agree finds, or sets, the epoch of a place that the journal was read into.
func (r *Redis) agree(ctx context.Context, p *part, attempt string) error {
	journals := max(1, r.options.Journals)
	code, said, err := r.question(ctx, p, 0, beginScript, []any{p.run, p.run + "/" + rand.Text(), r.journal.identity, journals, r.seams.lease.Milliseconds(), attempt})
	switch {
	case err != nil:
		return err
	case code == "again":
		return errEmptied
	case len(said) != 1:
		return errReply
	case code == "waiting":
		return fmt.Errorf("Redis was emptied, or is another instance: %.9s of %d journals have been read in", said[0], journals)
	case code != "ok" || !strings.HasPrefix(said[0], p.run+"/"):
		return errReply
	}
	p.epoch = said[0]
	return r.journal.noteEpoch(ctx, p.epochKey, p.epoch)
}

// operator takes out of an error what may name a credential.
func operator(err error) error {
	if redis.HasErrorPrefix(err, "WRONGPASS") || redis.HasErrorPrefix(err, "NOAUTH") {
		return errors.New("Redis does not take the credentials")
	}
	return err
}

// beat renews the lease.
func (r *Redis) beat() {
	l, err := r.linked()
	if err != nil {
		return
	}
	for i := range l.parts {
		if _, err := r.askAt(r.ctx, l, i, 0, beatScript, r.owner, r.seams.lease.Milliseconds()); err != nil {
			return // askAt has ended the link, where that is due
		}
	}
}

// returnOrphans gives back calls that were refused without its being known
// whether Redis holds them.
func (r *Redis) returnOrphans() {
	for range 256 {
		r.mu.Lock()
		if len(r.orphans) == 0 {
			r.mu.Unlock()
			return
		}
		o := r.orphans[0]
		r.mu.Unlock()
		if _, err := r.ask(r.ctx, o.principal, retractScript, o.id, r.owner, o.nonce); err != nil {
			return
		}
		r.mu.Lock()
		r.orphans = r.orphans[1:]
		r.mu.Unlock()
	}
}

// watchedAtOnce is how many watched calls are asked for with one question.
const watchedAtOnce = 256

// lookAtWatched tells those who watch a call that another process has finished,
// or that has gone.
func (r *Redis) lookAtWatched() {
	l, err := r.linked()
	if err != nil {
		return
	}
	for ids := r.watched.ids(); len(ids) > 0; {
		some := ids[:min(len(ids), watchedAtOnce)]
		ids = ids[len(some):]
		args := make([]any, len(some))
		for i, id := range some {
			args[i] = id
		}
		for at := range l.parts {
			steps, err := r.askAt(r.ctx, l, at, 0, stepsScript, args...)
			if err != nil || len(steps) != len(some) {
				return
			}
			for i, step := range steps {
				// Whose note is whose is not known here: who watches a call with a note
				// looks at it each time.
				if s, noted := strings.CutSuffix(step, " noted"); noted || Step(s) == Ended {
					r.watched.tell(some[i])
				}
			}
		}
	}
}
