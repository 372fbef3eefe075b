package callout

// Read is read, for tests.
var Read = read
