// Package route has the routers: rules that choose the replica which serves a request, one file each.
//
// A router sees its endpoints through a [View]. Metrics of replicas are those of the last scrape. What a router counts
// itself, the requests that it has sent and that have not ended, is exact, but does not include other routers'
// requests: a fleet may have several routers, which share nothing.
//
// A file has the router, whose exported fields with tags are its options, and its [Rule]: the name, what the catalog
// says, and the defaults. [Rules] lists the rules. Most routers have an [Identity], which distinguishes the routers of
// one fleet, and [Requirements], which [Check] compares with the configuration. Tags say which values are allowed; a
// method Validate checks what tags cannot say.
//
// To add a router, write such a file and add its rule to [Rules]. least_requests.go is a short example.
package route
