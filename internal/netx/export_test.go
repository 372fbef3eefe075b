package netx

// Hostnames returns a host without its port as it is found the short way, if it can be, and as
// the URL of the host has it.
func Hostnames(host string) (plain string, ok bool, parsed string) {
	plain, ok = plainHostname(host)
	return plain, ok, parsedHostname(host)
}
