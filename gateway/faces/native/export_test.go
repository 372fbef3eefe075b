package native

// Routes are the routes of a face, each as its method and path.
func Routes(f *Face) []string {
	var all []string
	for _, r := range f.routes() {
		all = append(all, r.Method+" "+r.Path)
	}
	return all
}
