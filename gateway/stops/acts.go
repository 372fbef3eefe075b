package stops

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/callgate/callgate/audit"
	"github.com/callgate/callgate/gateway/refuse"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/store"
)

// Gateway is one of the gateways that share their stops.
type Gateway struct {
	Node    string `json:"node"`              // its name, in the file node of its data_dir
	Replica string `json:"replica,omitempty"` // the name of its machine, where it says it
}

// Act is what has become of a stop or a resumption.
type Act struct {
	Stop store.Stop
	// Confirmed are the gateways that have said that it is in force there, and Missing those that live and
	// have not. Both are empty where this gateway shares its stops with no other.
	Confirmed, Missing []Gateway
	// Problems say what else an operator must know.
	Problems []string
}

// idLetters is how much of a random text an id has.
const idLetters = 12

// Stop has what a stop covers begin no more, from when it returns, and before it is written down. The
// error is a *refusal.Error, and nothing was stopped.
func (d *Desk) Stop(ctx context.Context, s store.Stop) (Act, error) {
	ctx = context.WithoutCancel(ctx)
	now := d.o.Now().UTC().Truncate(time.Millisecond)
	if err := check(&s, now); err != nil {
		return Act{}, err
	}
	if len(d.Active()) >= store.MaxActiveStops {
		return Act{}, refusal.New(refusal.Overloaded,
			fmt.Sprintf("%d stops are in force, and there may be no more. Resume some, or stop more with one.", store.MaxActiveStops))
	}
	s.ID, s.Since = "stop_"+rand.Text()[:idLetters], now
	d.merge([]store.Stop{s})
	d.o.Log.Warn("an operator has stopped calls", "stop", s.ID, "covers", s.String(), "by", s.By)
	act := Act{Stop: s}
	if err := d.save(); err != nil {
		act.Problems = append(act.Problems,
			"It is in force and is not on the disk yet, so a restart may forget it: the log of the gateway says why.")
	}
	unshared := d.share(ctx)
	w, r := d.o.Kernel.Writer(), d.record(&s, s.By, audit.Stopped)
	if err := w.Write(ctx, r); err != nil {
		act.Problems = append(act.Problems, "The audit log has not taken it yet: it is tried again.")
		w.Later(func() {}, r)
	}
	d.await(ctx, &act, unshared)
	return act, nil
}

// Resume ends a stop. It does once that is in the audit log and on the disk. The error is a
// *refusal.Error, and everything stays stopped while this process lives; the same may be asked again.
func (d *Desk) Resume(ctx context.Context, id, by string) (Act, error) {
	ctx = context.WithoutCancel(ctx)
	list := d.Active()
	i := slices.IndexFunc(list, func(s store.Stop) bool { return s.ID == id })
	if i < 0 {
		return Act{}, refusal.New(refusal.NotFound, "There is no such stop, or it has ended.")
	}
	s := list[i]
	s.Until = d.o.Now().UTC().Truncate(time.Millisecond)
	if err := d.o.Kernel.Writer().Write(ctx, d.record(&s, by, audit.Resumed)); err != nil {
		return Act{}, refuse.Unrecorded(err)
	}
	if err := d.save(s); err != nil {
		return Act{}, refusal.New(refusal.StoreUnavailable,
			"The disk did not confirm the resumption, so this is still stopped, though a restart may end the stop. Resume it again; the log of the gateway says why.").WithCause(err)
	}
	d.merge([]store.Stop{s})
	d.o.Log.Info("an operator has resumed what was stopped", "stop", s.ID, "covers", s.String(), "by", by)
	act := Act{Stop: s}
	d.await(ctx, &act, d.share(ctx))
	return act, nil
}

// maxName bounds the names of a stop, in bytes, as those of requests.
const maxName = 1024

// check refuses a stop that says too little, or what cannot be.
func check(s *store.Stop, now time.Time) error {
	for _, name := range []string{s.Principal, s.Agent, s.Workspace, s.Project, s.Tool, s.Thread} {
		if len(name) > maxName || !utf8.ValidString(name) {
			return refusal.New(refusal.BadRequest, fmt.Sprintf("A name is longer than %d bytes, or is not UTF-8.", maxName))
		}
	}
	switch n := utf8.RuneCountInString(s.Reason); {
	case n == 0 || n > audit.MaxReason || !utf8.ValidString(s.Reason):
		return refusal.New(refusal.BadRequest,
			fmt.Sprintf("The reason is for the next operator, and has 1 to %d characters.", audit.MaxReason))
	case s.Project != "" && s.Workspace == "":
		return refusal.New(refusal.BadRequest, "A project is named together with its workspace.")
	case !s.Active(now):
		return refusal.New(refusal.BadRequest, "The time for which it is stopped must be longer than nothing.")
	}
	return nil
}

// record is the event of a stop or a resumption.
func (d *Desk) record(s *store.Stop, by string, code refusal.Code) audit.Record {
	return audit.Record{
		Time: d.o.Now(), Event: audit.Stop, Mode: audit.Call, CallID: s.ID, Principal: by, OfPrincipal: s.Principal,
		Agent: s.Agent, Workspace: s.Workspace, Project: s.Project, Thread: s.Thread, Tool: s.Tool,
		Stage: refusal.Permission, Code: code, ConfigDigest: d.o.Kernel.Digest(), Replica: d.o.Replica, Until: s.Until, Reason: s.Reason,
	}
}

// await waits until all gateways that live have confirmed an act, for a while.
func (d *Desk) await(ctx context.Context, act *Act, unshared error) {
	if d.o.Shared == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, confirmWait)
	defer cancel()
	for {
		now := d.o.Now() // it may end meanwhile
		leases, err := d.o.Shared.Leases(ctx)
		if err == nil && unshared == nil {
			act.Confirmed, act.Missing = nil, nil
			for _, l := range leases {
				if slices.Contains(l.Stops, act.Stop.ID) == act.Stop.Active(now) {
					act.Confirmed = append(act.Confirmed, Gateway{l.Node, l.Replica})
				} else {
					act.Missing = append(act.Missing, Gateway{l.Node, l.Replica})
				}
			}
			if len(act.Missing) == 0 {
				return
			}
		}
		select {
		case <-ctx.Done():
			switch {
			case unshared != nil:
				act.Problems = append(act.Problems, "The other gateways cannot be told now, since Redis does not answer: they are as soon as it does. Tell them at their own admin listeners.")
			case len(act.Confirmed)+len(act.Missing) == 0:
				act.Problems = append(act.Problems, "Whether the other gateways have it is not known, since Redis does not answer.")
			}
			return
		case <-time.After(confirmLook):
		}
		if unshared != nil {
			unshared = d.share(ctx)
		}
	}
}

// Active returns the stops that have not ended, the oldest first.
func (d *Desk) Active() []store.Stop {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := d.o.Now()
	return slices.DeleteFunc(slices.Clone(d.list), func(s store.Stop) bool { return !s.Active(now) })
}

// Kept returns the stops that have not ended, and those that have ended lately, the oldest first.
func (d *Desk) Kept() []store.Stop {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.list)
}

// Alone reports whether this gateway shares its stops with no other.
func (d *Desk) Alone() bool { return d.o.Shared == nil }

// Known reports whether it is known what operators have stopped: else everything is refused.
func (d *Desk) Known() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.known
}

// Problem says why the stops of other gateways are not known here; empty: they are.
func (d *Desk) Problem() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case d.unread == nil || d.known && d.o.Now().Sub(d.read) <= unreadAfter:
		return ""
	case !d.known:
		return "nothing begins before the stops of other gateways were read: " + d.unread.Error()
	}
	return fmt.Sprintf("the stops of other gateways are not known since %s: %v", d.read.UTC().Format(time.RFC3339), d.unread)
}
