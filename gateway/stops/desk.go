// Package stops has operators stop what must not begin any more, and resume it.
//
// A stop takes effect in this process before anything else, is then written to a file of data_dir and
// to Redis, where gateways share one, and to the audit log last. Resuming goes the other way: into the
// log, into the file, and then it takes effect. Once a second each gateway takes over what the others
// have, and says by its lease what is in force there. Lists are merged by store.MergeStops, so it does
// not matter who learns of what when, and what Redis has lost comes back from any gateway.
package stops

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/store"
)

// Shared is where gateways share their stops.
type Shared interface {
	ShareStops(ctx context.Context, own []store.Stop) (all []store.Stop, err error)
	ConfirmStops(ctx context.Context, ids []string) error
	Leases(ctx context.Context) ([]store.Lease, error)
}

// Options are the parts of a Desk.
type Options struct {
	Kernel *gateway.Kernel
	// File keeps the stops of this gateway.
	File File
	// Shared is nil where no other gateway shares them.
	Shared Shared
	// UnreadRefuses says that everything is refused until Shared was read once, unless the file says what
	// it had.
	UnreadRefuses bool
	Replica       string
	Log           *slog.Logger
	// Now is the clock; nil is time.Now.
	Now func() time.Time
}

// The times of a Desk.
const (
	interval        = time.Second
	unknownInterval = 50 * time.Millisecond
	confirmWait     = 3 * time.Second
	confirmLook     = 50 * time.Millisecond
	// unreadAfter is how long Shared may not be read before operators are told.
	unreadAfter = 5 * time.Second
)

// Desk keeps what operators have stopped. It is safe for concurrent use.
type Desk struct {
	o Options

	mu     sync.Mutex
	list   []store.Stop // active ones and those that have ended
	known  bool         // Shared was read, or need not be
	shared bool         // Shared was read, by this process or by an earlier one
	read   time.Time    // when Shared was read last
	unread error        // why it could not be read since; nil: it could
	told   bool         // the log has said so

	writing sync.Mutex // of the file
	written kept       // what it has
	unsaved bool       // the log has said that it cannot be written

	end     context.CancelFunc
	stopped chan struct{}
}

// Open returns a desk whose stops are in force. The error is that of a file which cannot be read: nobody
// knows then what was stopped.
func Open(ctx context.Context, o Options) (*Desk, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	kept, err := o.File.read()
	if err != nil {
		return nil, err
	}
	d := &Desk{o: o, list: kept.Stops, written: kept, shared: kept.Shared, read: o.Now(), stopped: make(chan struct{})}
	d.known = kept.Shared || o.Shared == nil || !o.UnreadRefuses
	d.apply()
	d.refresh(ctx)
	ctx, d.end = context.WithCancel(context.Background())
	go d.run(ctx)
	return d, nil
}

// Close ends the desk. What was stopped stays so.
func (d *Desk) Close() {
	d.end()
	<-d.stopped
}

func (d *Desk) run(ctx context.Context) {
	defer close(d.stopped)
	for {
		pause := interval
		if !d.Known() { // and so nothing passes
			pause = unknownInterval
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
			d.refresh(ctx)
		}
	}
}

// merge adds to the list what others know, and puts it in force. It returns the list.
func (d *Desk) merge(more []store.Stop) []store.Stop {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.list = store.MergeStops(d.list, more, d.o.Now())
	d.apply()
	return d.list
}

// apply puts the list in force. The lock is held, or nobody else has the desk yet.
func (d *Desk) apply() { d.o.Kernel.Stop(d.list, d.known) }

// refresh takes over what others have stopped and resumed, and writes down what was not yet.
func (d *Desk) refresh(ctx context.Context) {
	if d.o.File.Foreign {
		if others, err := d.o.File.read(); err == nil { // else it is read the next time
			d.merge(others.Stops)
		}
	}
	_ = d.share(ctx) // what fails is told, and tried again
	_ = d.save()
}

// share exchanges stops with the other gateways.
func (d *Desk) share(ctx context.Context) error {
	if d.o.Shared == nil {
		return nil
	}
	began := d.o.Now()
	all, err := d.o.Shared.ShareStops(ctx, d.merge(nil))
	if err == nil {
		err = d.o.Shared.ConfirmStops(ctx, active(d.merge(all), d.o.Now()))
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.unread = err; err == nil {
		d.read, d.shared = began, true
		if !d.known {
			d.known = true
			d.apply()
		}
	}
	if away := err != nil && d.o.Now().Sub(d.read) > unreadAfter; away != d.told {
		d.told = away
		if away {
			d.o.Log.Error("the stops of other gateways cannot be read; those that are known here stay in force", "cause", err.Error())
		} else {
			d.o.Log.Info("the stops of all gateways are known again")
		}
	}
	return err
}

// active are the ids of the stops that have not ended.
func active(list []store.Stop, now time.Time) (ids []string) {
	for i := range list {
		if list[i].Active(now) {
			ids = append(ids, list[i].ID)
		}
	}
	return ids
}

// save writes the list to the file, as it is with some more, unless the file says it already.
func (d *Desk) save(more ...store.Stop) error {
	d.writing.Lock()
	defer d.writing.Unlock()
	d.mu.Lock()
	now := kept{Stops: store.MergeStops(d.list, append(more, d.written.Stops...), d.o.Now()), Shared: d.shared}
	d.mu.Unlock()
	if d.o.File.Foreign || now.Shared == d.written.Shared && !store.StopsAdd(now.Stops, d.written.Stops) {
		return nil
	}
	err := d.o.File.write(now)
	if err == nil {
		d.written = now
	}
	if unsaved := err != nil; unsaved != d.unsaved {
		d.unsaved = unsaved
		if unsaved {
			d.o.Log.Error("stops cannot be kept; they are in force, and a restart may forget them", "file", d.o.File.Path,
				"cause", err.Error())
		} else {
			d.o.Log.Info("stops are kept again", "file", d.o.File.Path)
		}
	}
	return err
}
