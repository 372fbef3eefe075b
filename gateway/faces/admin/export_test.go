package admin

func (r *Recent) Find(id string) (any, bool) { return r.find(id) }
func (r *Recent) Counts() Counts             { return r.counts() }
