package search

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"runtime"
	"slices"
	"sync"

	"github.com/callgate/callgate/audit"
	"github.com/callgate/callgate/audit/internal/logfile"
)

// Found is a record that a query selects.
type Found struct {
	audit.Record
	Line []byte // as it stands in the log, without the line end
	File string // that it stands in
	Log  int    // the number of its log: records of one log stand in one order
}

// pieceBytes is how much one worker reads at a time, and what the lines are longer at its end.
const pieceBytes = 2 << 20

// maxFaults is how many faulty lines of a log are reported: a reader of so many does not need
// the next one, and to find the number of a line its file is read.
const maxFaults = 100

// Options of a search.
type Options struct {
	// NewestFirst reverses the order of time.
	NewestFirst bool
	// OnRead, if not nil, is told how many bytes more were read.
	OnRead func(bytes int64)

	piece int64 // 0 is pieceBytes
}

// Records returns the records that a query selects, in the order of time; those of one log stand
// in its order. A *audit.CorruptionError is a line that may match and is not as it was written:
// the search continues behind it. Any other error ends it.
func (l *Logs) Records(ctx context.Context, q Query, opts Options) iter.Seq2[Found, error] {
	if opts.piece == 0 {
		opts.piece = pieceBytes
	}
	f := q.filter()
	if len(l.chains) == 1 {
		return l.chains[0].records(ctx, f, opts)
	}
	return func(yield func(Found, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		next := make([]func() (Found, error, bool), len(l.chains))
		heads := make([]*Found, len(l.chains))
		// fill takes the next record of a log, and passes on its errors.
		fill := func(i int) bool {
			for {
				found, err, ok := next[i]()
				heads[i] = nil
				switch {
				case !ok:
					return true
				case err == nil:
					heads[i] = &found
					return true
				case !yield(Found{}, err) || !isFault(err):
					return false
				}
			}
		}
		for i, c := range l.chains {
			pull, stop := iter.Pull2(c.records(ctx, f, opts))
			defer stop()
			next[i] = pull
			if !fill(i) {
				return
			}
		}
		for {
			first := -1
			for i, head := range heads {
				if head == nil {
					continue
				}
				if first < 0 || (opts.NewestFirst && head.Time.After(heads[first].Time)) ||
					(!opts.NewestFirst && head.Time.Before(heads[first].Time)) {
					first = i
				}
			}
			if first < 0 || !yield(*heads[first], nil) || !fill(first) {
				return
			}
		}
	}
}

// isFault reports whether an error is about one line.
func isFault(err error) bool {
	var fault *audit.CorruptionError
	return errors.As(err, &fault)
}

// result has the finds of a piece, in the order of the search, or the error that ended it.
type result struct {
	items []item
	read  int64
	err   error
}

// item is a record, or the fault of a line.
type item struct {
	found Found
	fault error
}

// records searches one log.
func (c *chain) records(ctx context.Context, f *filter, opts Options) iter.Seq2[Found, error] {
	return func(yield func(Found, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		var workers sync.WaitGroup
		// A search that was begun is waited for: it reads files that the caller closes.
		defer workers.Wait()
		defer cancel()
		results := make(chan chan result, runtime.GOMAXPROCS(0))
		workers.Go(func() {
			defer close(results)
			c.start(ctx, f, opts, &workers, results)
		})
		faults := 0
		for pending := range results {
			r := <-pending
			if opts.OnRead != nil {
				opts.OnRead(r.read)
			}
			for _, i := range r.items {
				if !yield(i.found, i.fault) {
					return
				}
				if i.fault == nil {
					continue
				}
				if faults++; faults == maxFaults {
					yield(Found{}, fmt.Errorf("%d lines are not as they were written; the rest was not searched", faults))
					return
				}
			}
			if r.err != nil {
				yield(Found{}, r.err)
				return
			}
		}
		if err := ctx.Err(); err != nil {
			yield(Found{}, err)
		}
	}
}

// start begins the search of each piece, in the order in which the results are wanted.
func (c *chain) start(ctx context.Context, f *filter, opts Options, workers *sync.WaitGroup, results chan<- chan result) {
	send := func(work func() result) bool {
		pending := make(chan result, 1)
		select {
		case results <- pending:
		case <-ctx.Done():
			return false
		}
		workers.Go(func() { pending <- work() })
		return true
	}
	files := make([]int, len(c.files))
	for i := range files {
		files[i] = i
	}
	if opts.NewestFirst {
		slices.Reverse(files)
	}
	for _, file := range files {
		p, err := c.part(file, &f.Query)
		if err != nil {
			send(func() result { return result{err: err} })
			return
		}
		pieces := (p.to - p.from + opts.piece - 1) / opts.piece
		for i := range pieces {
			if opts.NewestFirst {
				i = pieces - 1 - i
			}
			from := p.from + i*opts.piece
			if !send(func() result { return c.search(f, p, from, min(from+opts.piece, p.to), opts.NewestFirst) }) {
				return
			}
		}
	}
}

// buffers are reused by workers.
var buffers = sync.Pool{New: func() any { return new([]byte) }}

// maxReused bounds the buffers that are kept.
const maxReused = 2 * pieceBytes

// search looks at the lines of a part that begin from an offset on and before another.
func (c *chain) search(f *filter, p part, from, to int64, newestFirst bool) (r result) {
	buf := buffers.Get().(*[]byte)
	defer func() {
		if cap(*buf) <= maxReused {
			buffers.Put(buf)
		}
	}()
	file, _, done, err := c.openFile(p.file)
	if err != nil {
		return result{err: err}
	}
	defer done()
	fault := func(at int64, cause error) {
		line, err := logfile.CountLines(file, at)
		if err == nil {
			err = &audit.CorruptionError{File: c.files[p.file], Line: line + 1, Reason: cause.Error()}
		}
		r.items = append(r.items, item{fault: err})
	}
	lines, at, err := readLines(file, (*buf)[:0], p, from, to)
	*buf = lines
	r.read = to - from
	if err != nil && !errors.Is(err, logfile.ErrLong) {
		return result{err: fmt.Errorf("%s: %w", c.files[p.file], err)}
	}
	each(lines, f, func(line []byte, offset int, whole bool) {
		switch {
		case !whole && p.file == len(c.files)-1: // it is being written, or its writer ended
		case !whole:
			fault(at+int64(offset), errors.New("is incomplete, and another file follows"))
		default:
			record, err := read(line)
			if err != nil {
				fault(at+int64(offset), err)
			} else if f.matches(&record) {
				r.items = append(r.items, item{found: Found{Record: record, Line: bytes.Clone(line), File: c.files[p.file], Log: c.number}})
			}
		}
	})
	if err != nil {
		fault(at+int64(len(lines)), err)
	}
	if newestFirst {
		slices.Reverse(r.items)
	}
	return r
}

// read reads a line that is as it was written.
func read(line []byte) (audit.Record, error) {
	at, _, err := logfile.ParseChained(line)
	if err != nil {
		return audit.Record{}, err
	}
	r, err := audit.Decode(line)
	if err != nil || r.Seq != at.Seq {
		return audit.Record{}, errors.New("has a member of the wrong type")
	}
	return r, nil
}

// readLines reads the lines of a part that begin at from or behind it, and before to. It returns
// the offset of the first. The last may have no end. The error logfile.ErrLong is about the line
// behind those that are returned.
func readLines(f io.ReaderAt, buf []byte, p part, from, to int64) ([]byte, int64, error) {
	start := max(p.from, from-1) // the byte before shows whether a line begins at from
	buf = slices.Grow(buf, int(to-start))[:to-start]
	if _, err := f.ReadAt(buf, start); err != nil {
		return nil, start, err
	}
	if start < from {
		i := bytes.IndexByte(buf[:len(buf)-1], '\n')
		if i < 0 {
			return nil, to, nil
		}
		buf, start = buf[i+1:], start+int64(i)+1
	}
	for at := to; at < p.to && buf[len(buf)-1] != '\n'; {
		n := min(64<<10, p.to-at)
		seen := len(buf)
		buf = slices.Grow(buf, int(n))[:seen+int(n)]
		if _, err := f.ReadAt(buf[seen:], at); err != nil {
			return nil, start, err
		}
		if i := bytes.IndexByte(buf[seen:], '\n'); i >= 0 {
			return buf[:seen+i+1], start, nil
		}
		if last := bytes.LastIndexByte(buf, '\n'); len(buf)-last > logfile.MaxLine {
			return buf[:last+1], start, logfile.ErrLong
		}
		at += n
	}
	return buf, start, nil
}

// each calls visit with each line that may match, without its line end, and its offset. whole
// says that it has a line end.
func each(lines []byte, f *filter, visit func(line []byte, offset int, whole bool)) {
	for from := 0; from < len(lines); {
		start := from
		if len(f.needles) > 0 {
			i := bytes.Index(lines[from:], f.needles[0])
			if i < 0 {
				return
			}
			start = from + bytes.LastIndexByte(lines[from:from+i], '\n') + 1
		}
		line := lines[start:]
		end := bytes.IndexByte(line, '\n')
		if end >= 0 {
			line = line[:end]
		}
		if f.mayMatch(line) {
			visit(line, start, end >= 0)
		}
		from = start + len(line) + 1
	}
}
