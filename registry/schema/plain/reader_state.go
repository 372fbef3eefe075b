package plain

// run is the state of reading one value. Its methods that return a bool return false for
// what is not valid; then nothing else may be asked of the run.
type run struct {
	p     *Program
	b     []byte
	i     int // of the next byte
	steps int
	// tooDeep: the value nests deeper than maxDepth.
	tooDeep bool
	// within, unless it is nil, is asked about each text that has a boundary.
	within func(boundary, text string) bool
}

// peek returns the next byte, or 0 at the end.
func (r *run) peek() byte {
	if r.i < len(r.b) {
		return r.b[r.i]
	}
	return 0
}

// take passes over a byte.
func (r *run) take(c byte) bool {
	if r.peek() != c {
		return false
	}
	r.i++
	return true
}

func (r *run) space() {
	for r.i < len(r.b) {
		switch r.b[r.i] {
		case ' ', '\t', '\n', '\r':
			r.i++
		default:
			return
		}
	}
}

func (r *run) spend(steps int) bool {
	r.steps += steps
	return r.steps <= r.p.maxSteps
}

func (r *run) word(w string) bool {
	end := r.i + len(w)
	if end > len(r.b) || string(r.b[r.i:end]) != w {
		return false
	}
	r.i = end
	return true
}
