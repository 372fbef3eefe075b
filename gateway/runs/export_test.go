package runs

// Held is what a log holds.
type Held struct{ Runs, Listed, Bytes, Counted, Principals int }

// Held counts what the log holds; Counted adds up what each run takes.
func (l *Log) Held() Held {
	l.mu.Lock()
	defer l.mu.Unlock()
	h := Held{Runs: len(l.runs), Listed: l.all.Len(), Bytes: l.bytes, Principals: len(l.by)}
	for _, r := range l.runs {
		h.Counted += runCost + r.run.Head.size() + len(r.principal)
		for i := range r.run.Turns {
			h.Counted += r.run.Turns[i].size()
		}
		if r.run.Error != nil {
			h.Counted += len(r.run.Error.Message)
		}
	}
	return h
}
