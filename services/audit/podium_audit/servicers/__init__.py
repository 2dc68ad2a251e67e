"""The gRPC face of audit, one servicer per service of the contracts: they translate, submit and answer."""
