package responses

// earlierCall is a call of the history that is not answered yet.
type earlierCall struct {
	kind, name string
	arguments  string // of a function, and of one that its caller was asked about
	async      bool   // its result may come later
}

// history reads the input of a request.
type history struct {
	run  *dialogue
	open map[string]earlierCall // by call_id
	used map[string]string      // the types of calls, by the ids that were used
	// answered are the calls that have a result, by the same ids.
	answered map[string]earlierCall
	// unseen means that calls exist which the request does not show: it continues a stored
	// response.
	unseen bool
}
