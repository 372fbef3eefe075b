package store

import (
	"context"
	"errors"
	"strings"
	"time"
)

// Where several gateways keep calls on one back end, each is a node. The process of a node has a lease,
// which it renews; once that is over, others take over the calls of the node. The process that comes
// after it on the same node takes them over at once: of a node there is one process at a time.

// Lease says until when the process of a node lives.
type Lease struct {
	Node, Process string
	Until         time.Time
	// Mark is the last record of the node's audit log before which everything is in the store.
	Mark uint64
	// Epoch is what the store was agreed to have when the lease was renewed: where it has that still, it has lost
	// nothing since.
	Epoch string
	// Stops are the ids of the stops that are in force in the process, and Replica the name of its machine; both are
	// empty where nothing is stopped, so that an earlier Callgate reads the lease.
	Stops   []string `json:",omitempty"`
	Replica string   `json:",omitempty"`
}

// nodeOf returns the node of a process: what its name has before a slash.
func nodeOf(process string) string {
	node, _, _ := strings.Cut(process, "/")
	if len(node) == len(process) {
		return ""
	}
	return node
}

// owing names the calls that a node has ended for others, and that may have no outcome in its log. No node has
// such a name.
func owing(node string) string { return node + "/" }

// ErrSameNode says that two processes of one node live.
var ErrSameNode = errors.New("another gateway has the name of this node: give each its own data_dir, and copy none")

// Renew renews the lease of the process. held says that it had one for as long as a lease is.
func (e *Engine) Renew(ctx context.Context, life time.Duration, mark uint64, epoch string, held bool) error {
	p := &e.process
	noticed := e.noticed.Load()
	isNew := epoch != "" && (noticed == nil || *noticed != epoch)
	err := e.change(ctx, func(s *step) error {
		if isNew {
			if err := s.notice(epoch); err != nil {
				return err
			}
		}
		was, err := get[Lease](s, LeaseRecord, p.Node)
		if err != nil {
			return err
		}
		if held && was != nil && was.Process != p.Name && was.Until.After(s.now) {
			return ErrSameNode
		}
		lease := &Lease{Node: p.Node, Process: p.Name, Until: s.now.Add(life), Mark: mark, Epoch: epoch}
		e.confirm(lease)
		return s.put(LeaseRecord, p.Node, lease)
	})
	if err == nil && isNew {
		e.noticed.Store(&epoch)
	}
	return err
}

// Lease returns the last lease of the node; the zero value: it has none.
func (e *Engine) Lease(ctx context.Context) (Lease, error) {
	lease, err := view[Lease](ctx, e, LeaseRecord, e.process.Node)
	if err != nil || lease == nil {
		return Lease{}, err
	}
	return *lease, nil
}

// TakeOver makes at most limit calls those of this process that earlier processes of its node have
// dispatched, and, where others is true, processes of other nodes whose leases are over, and those of
// this node that were put back from its log. It returns them; calls that were only opened are removed. A lease
// that has been over for longer than Retention is removed as well, once its node has no calls.
func (e *Engine) TakeOver(ctx context.Context, limit int, others bool) (taken []Call, err error) {
	leases := []Lease{{Node: e.process.Node}}
	if others {
		if err := indexed(ctx, e, LeaseRecord, Index{NodeIndex, ""}, firstRow, lastRow, everyRow, func(l *Lease) bool {
			if l.Node != e.process.Node && l.over(e.now()) {
				leases = append(leases, *l)
			}
			return true
		}); err != nil {
			return nil, err
		}
	}
	for i, lease := range leases {
		err := e.scan(ctx, Index{OpenIndex, lease.Node}, firstRow, lastRow, everyRow, sweepBatch, func(rows []Row) (bool, error) {
			some, err := e.takeOver(ctx, lease.Node, rows, others)
			taken = append(taken, some...)
			return len(taken) < limit, err
		})
		if err != nil || len(taken) >= limit {
			return taken, err
		}
		if i > 0 && lease.outlived(e.now()) {
			if err := e.dropLease(ctx, lease.Node); err != nil {
				return taken, err
			}
		}
	}
	return taken, nil
}

func (l *Lease) over(now time.Time) bool { return !l.Until.After(now) }

// outlived reports whether nothing that the node has done before its lease was over is kept any more.
func (l *Lease) outlived(now time.Time) bool { return now.Sub(l.Until) >= Retention }

// dropLease removes the lease of a node that is gone, unless it has calls. A node that comes back without a
// lease has neither mark nor epoch, so it puts back all that its log says of the time of Retention.
func (e *Engine) dropLease(ctx context.Context, node string) error {
	err := e.change(ctx, func(s *step) error {
		lease, err := get[Lease](s, LeaseRecord, node)
		if err != nil || lease == nil || !lease.outlived(s.now) {
			return err
		}
		s.commit.Rooms = append(s.commit.Rooms, Room{Index{OpenIndex, node}, firstRow, 1})
		return s.drop(LeaseRecord, node)
	})
	if errors.Is(err, ErrFull) { // it has calls, which nobody takes over without its lease
		return nil
	}
	return err
}

// takeOver takes over those of some calls of a node that have no process.
func (e *Engine) takeOver(ctx context.Context, node string, rows []Row, logged bool) (taken []Call, err error) {
	var keys []Key
	for _, row := range rows {
		if !e.process.Holds(row.ID) {
			keys = append(keys, Key{CallRecord, row.ID})
		}
	}
	if len(keys) == 0 {
		return nil, nil
	}
	err = e.change(ctx, func(s *step) error {
		taken = taken[:0]
		if node != e.process.Node {
			lease, err := get[Lease](s, LeaseRecord, node)
			if err != nil || lease == nil || !lease.over(s.now) {
				return err
			}
		}
		if err := s.read(keys...); err != nil {
			return err
		}
		for _, key := range keys {
			c, err := get[Call](s, CallRecord, key.ID)
			switch {
			case err != nil:
				return err
			case c == nil || c.Step == Ended || nodeOf(c.Owner) != node || !logged && c.Owner == node+loggedProcess:
				continue
			case c.Step == Opened:
				if err := s.removeCall(c); err != nil {
					return err
				}
				continue
			}
			mine := *c
			if mine.Owner = e.process.Name; mine.DecidedBy == "" && node != e.process.Node {
				mine.DecidedBy = node
			}
			if err := s.put(CallRecord, c.ID, &mine); err != nil {
				return err
			}
			taken = append(taken, mine)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return taken, nil
}

// Watched returns the calls and approvals that are watched.
func (e *Engine) Watched() (keys []Key) {
	for _, id := range e.watchers.IDs() {
		keys = append(keys, Key{CallRecord, id})
	}
	for _, id := range e.approvalWatchers.IDs() {
		keys = append(keys, Key{AskRecord, id})
	}
	return keys
}

// Wake wakes those who watch a record.
func (e *Engine) Wake(key Key) {
	if key.Kind == CallRecord {
		e.watchers.Notify(key.ID)
	} else {
		e.approvalWatchers.Notify(key.ID)
	}
}
