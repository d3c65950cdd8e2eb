// In place of the router's look at who made its socket: the simulated machine has one account.

export function checkSocket(): void {}

export function checkSocketDirectory(): void {}
