package capture

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"

	"github.com/callgate/callgate/internal/oserr"
	"github.com/callgate/callgate/internal/wholefile"
)

const (
	maxTools      = 4096      // definitions
	maxToolBytes  = 32 << 20  // of all of them
	maxBodyFiles  = 256 << 20 // bytes of the files of whole bodies
	bodiesFolder  = "bodies"
	conflictsName = ".conflicts"
)

// Summary counts the recorded requests and tools.
type Summary struct {
	Requests  int // to the paths of known APIs
	Skipped   int // of them, not recorded
	Files     []File
	BodyFiles int
}

// File is one file of tools.
type File struct {
	API       string // the importer that reads it
	Path      string
	Tools     int
	Conflicts int // definitions in the file of conflicts
}

// exchange is one request that is recorded, once.
type exchange struct {
	recorder *recorder
	number   int
	api      string
	encoding string   // of the body
	secrets  []string // of the headers and of the URL
	body     *copiedBody
	done     sync.Once
}

// record records the request as far as it was read. It may be called several times, also of no exchange.
func (x *exchange) record() {
	if x == nil {
		return
	}
	x.done.Do(func() {
		data, problem := x.body.take()
		x.recorder.record(x, data, problem)
		x.body.release()
	})
}

// exchangeKey is the key of the exchange in the context of its request.
type exchangeKey struct{}

func recordOf(r *http.Request) *exchange {
	x, _ := r.Context().Value(exchangeKey{}).(*exchange)
	return x
}

// recorder keeps the tools of requests. It is safe for concurrent use.
type recorder struct {
	options Options
	memory  atomic.Int64 // bytes of copies of bodies
	running sync.WaitGroup

	mu        sync.Mutex
	finished  bool
	apis      map[string]*apiTools
	tools     int
	toolBytes int
	bodyBytes int
	sum       Summary
}

// apiTools are the tools of one API.
type apiTools struct {
	names     map[string]bool
	known     map[string]bool // definitions, in one form
	tools     [][]byte
	conflicts [][]byte
}

// apis are the importers, in the order of a summary.
var apis = []string{"openai", "anthropic", "responses"}

func newRecorder(o Options) *recorder {
	r := &recorder{options: o, apis: map[string]*apiTools{}}
	for _, api := range apis {
		r.apis[api] = &apiTools{names: map[string]bool{}, known: map[string]bool{}}
	}
	return r
}

// begin numbers a request, from 1, which end must be called for. It is not ok once the recorder finishes.
func (r *recorder) begin() (number int, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.finished {
		return 0, false
	}
	r.running.Add(1)
	r.sum.Requests++
	return r.sum.Requests, true
}

// end notes that nothing more is recorded of a request.
func (r *recorder) end() { r.running.Done() }

// finish lets no request begin, and waits for those that have.
func (r *recorder) finish() {
	r.mu.Lock()
	r.finished = true
	r.mu.Unlock()
	r.running.Wait()
}

// record records a request, or says why it does not.
func (r *recorder) record(x *exchange, data []byte, problem string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if problem == "" {
		if err := r.keep(x, data); err != nil {
			problem = err.Error()
		}
	}
	if problem != "" {
		r.sum.Skipped++
		r.options.Log(fmt.Sprintf("not recorded: request %d (%s): %s", x.number, x.api, problem))
	}
}

func (r *recorder) keep(x *exchange, data []byte) error {
	data, err := decompress(data, x.encoding)
	if err != nil {
		return err
	}
	request, err := readRequest(data)
	if err != nil {
		return err
	}
	if holdsSecret(request.body, x.secrets) {
		return errors.New("its body holds a credential of its headers or its URL")
	}
	if r.options.Bodies {
		if err := r.writeBody(x.number, x.api, request.body); err != nil {
			return err
		}
	}
	return r.addTools(x.api, request.tools)
}

// decompress undoes the encoding of a body.
func decompress(data []byte, encoding string) ([]byte, error) {
	switch encoding {
	case "", "identity":
		return data, nil
	case "gzip":
		z, err := gzip.NewReader(bytes.NewReader(data))
		if err != nil {
			return nil, errors.New("its body is not gzip, although it says so")
		}
		data, err = io.ReadAll(io.LimitReader(z, maxBody+1))
		if err != nil {
			return nil, errors.New("its body is not gzip, although it says so")
		}
		if len(data) > maxBody {
			return nil, errors.New("its body is larger than 16 MiB")
		}
		return data, nil
	}
	return nil, errors.New("its body is compressed by something else than gzip: turn that off in the application while it is recorded")
}

// addTools adds the definitions that are new, and writes the files of the API.
func (r *recorder) addTools(api string, tools []definition) error {
	of, added, conflicts := r.apis[api], 0, 0
	for _, t := range tools {
		if of.known[t.canonical] {
			continue
		}
		if r.tools >= maxTools || r.toolBytes+len(t.raw) > maxToolBytes {
			return fmt.Errorf("there are too many tools: %d definitions of %d bytes were recorded", r.tools, r.toolBytes)
		}
		r.tools++
		r.toolBytes += len(t.raw)
		of.known[t.canonical] = true
		raw := bytes.Clone(t.raw) // the body's memory is given back
		if of.names[t.name] {
			of.conflicts = append(of.conflicts, raw)
			conflicts++
			r.options.Log(fmt.Sprintf("conflict: %s: %q has another definition than before; the first is kept in %s, this one is in %s",
				api, t.name, api+".json", api+conflictsName+".json"))
			continue
		}
		of.names[t.name] = true
		of.tools = append(of.tools, raw)
		added++
	}
	if added > 0 {
		if err := r.write(filepath.Join(r.options.Folder, api+".json"), toolsFile(of.tools)); err != nil {
			return err
		}
		r.options.Log(fmt.Sprintf("recorded: %d new tools, %d in %s.json", added, len(of.tools), api))
	}
	if conflicts > 0 {
		return r.write(filepath.Join(r.options.Folder, api+conflictsName+".json"), toolsFile(of.conflicts))
	}
	return nil
}

// toolsFile is a request that has nothing but tools.
func toolsFile(tools [][]byte) []byte {
	b := []byte(`{"tools":[` + "\n")
	b = append(b, bytes.Join(tools, []byte(",\n"))...)
	return append(b, "\n]}\n"...)
}

// writeBody writes a whole body.
func (r *recorder) writeBody(number int, api string, body []byte) error {
	if r.bodyBytes+len(body) > maxBodyFiles {
		return errors.New("the files of bodies are larger than 256 MiB")
	}
	folder := filepath.Join(r.options.Folder, bodiesFolder)
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return fmt.Errorf("cannot make %s: %w", folder, oserr.Reason(err))
	}
	if err := r.write(filepath.Join(folder, fmt.Sprintf("%04d-%s.json", number, api)), body); err != nil {
		return err
	}
	r.bodyBytes += len(body)
	r.sum.BodyFiles++
	return nil
}

func (r *recorder) write(path string, content []byte) error {
	if err := wholefile.Replace(path, content); err != nil {
		return fmt.Errorf("cannot write %s: %w", path, oserr.Reason(err))
	}
	return nil
}

// summary says what was recorded.
func (r *recorder) summary() Summary {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.sum
	s.Files = nil
	for _, api := range apis {
		if of := r.apis[api]; len(of.tools) > 0 {
			s.Files = append(s.Files, File{API: api, Path: filepath.Join(r.options.Folder, api+".json"), Tools: len(of.tools), Conflicts: len(of.conflicts)})
		}
	}
	return s
}
