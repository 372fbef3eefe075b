package deadline_test

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/callgate/callgate/internal/deadline"
)

// TestConnSameAsNet: beside a connection of package net, each read and each write ends at the
// same time and in the same way, however their deadlines moved before and meanwhile.
func TestConnSameAsNet(t *testing.T) {
	second := rapid.IntRange(-2, 9)
	type step struct {
		none    bool // the deadline is lifted
		at      int  // seconds from now
		pause   int
		attempt bool
		during  int // when the deadline moves while it waits; 0: it does not
		to      int // seconds from then
	}
	rapid.Check(t, func(rt *rapid.T) {
		writes := rapid.Bool().Draw(rt, "writes")
		var steps []step
		for range rapid.IntRange(1, 12).Draw(rt, "steps") {
			steps = append(steps, step{
				none: rapid.Bool().Draw(rt, "none"), at: second.Draw(rt, "at"), pause: rapid.IntRange(0, 5).Draw(rt, "pause"),
				attempt: rapid.Bool().Draw(rt, "attempt"), during: rapid.IntRange(0, 5).Draw(rt, "during"), to: second.Draw(rt, "to"),
			})
		}
		// run returns when each attempt ended.
		run := func(wrap func(net.Conn) net.Conn) (ends []time.Duration) {
			synctest.Test(t, func(t *testing.T) {
				near, far := net.Pipe()
				defer far.Close()
				c := wrap(near)
				defer c.Close()
				begun := time.Now()
				set, do := c.SetReadDeadline, c.Read
				if writes {
					set, do = c.SetWriteDeadline, c.Write
				}
				for _, s := range steps {
					var at time.Time
					if !s.none {
						at = time.Now().Add(time.Duration(s.at) * time.Second)
					}
					if err := set(at); err != nil {
						t.Fatal(err)
					}
					time.Sleep(time.Duration(s.pause) * time.Second)
					if !s.attempt || s.none && s.during == 0 {
						continue
					}
					if s.during > 0 {
						time.AfterFunc(time.Duration(s.during)*time.Second+time.Millisecond, func() {
							_ = set(time.Now().Add(time.Duration(s.to) * time.Second))
						})
					}
					if n, err := do(make([]byte, 3)); n != 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
						t.Errorf("found %d and %v", n, err)
					}
					ends = append(ends, time.Since(begun))
					time.Sleep(6 * time.Second) // the move is behind
				}
			})
			return ends
		}
		ours := run(func(c net.Conn) net.Conn { return deadline.NewConn(c, deadline.NewAlarms()) })
		theirs := run(func(c net.Conn) net.Conn { return c })
		if len(ours) != len(theirs) {
			rt.Fatalf("%v, want %v", ours, theirs)
		}
		for i := range ours {
			if ours[i] != theirs[i] {
				rt.Fatalf("%v, want %v", ours, theirs)
			}
		}
	})
}

// counted counts how often deadlines are set.
type counted struct {
	net.Conn
	sets atomic.Int32
}

func (c *counted) SetReadDeadline(at time.Time) error {
	c.sets.Add(1)
	return c.Conn.SetReadDeadline(at)
}

func (c *counted) SetWriteDeadline(at time.Time) error {
	c.sets.Add(1)
	return c.Conn.SetWriteDeadline(at)
}

// TestConnSetsFewDeadlines: a deadline that moves is set only once it was reached, and what is read and
// written before is whole.
func TestConnSetsFewDeadlines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := net.Pipe()
		under := &counted{Conn: near}
		c := deadline.NewConn(under, deadline.NewAlarms())
		sent := bytes.Repeat([]byte("0123456789"), 10)
		read := make(chan []byte)
		go func() {
			var all []byte
			for piece := make([]byte, 3); ; time.Sleep(100 * time.Millisecond) {
				n, err := far.Read(piece)
				if all = append(all, piece[:n]...); err != nil {
					read <- all
					return
				}
			}
		}()
		for range 1000 {
			_ = c.SetDeadline(time.Now().Add(time.Second))
			time.Sleep(time.Microsecond)
		}
		_ = c.SetWriteDeadline(time.Now().Add(time.Minute))
		if n, err := c.Write(sent); n != len(sent) || err != nil { // it takes 3 s
			t.Errorf("found %d and %v", n, err)
		}
		if sets := under.sets.Load(); sets != 1 { // that of reads was reached meanwhile
			t.Errorf("the deadlines were set %d times", sets)
		}
		_ = c.Close()
		if got := <-read; !bytes.Equal(got, sent) {
			t.Errorf("%q arrived", got)
		}
		if _, err := c.Read(make([]byte, 1)); !errors.Is(err, io.ErrClosedPipe) {
			t.Errorf("after its end: %v", err)
		}
	})
}
