"""Amounts for people: integer minor units and a currency code in, `R$ 100.00` out."""

from runner.protocol_relations import CURRENCY_EXPONENTS

SYMBOLS = {"BRL": "R$", "USD": "US$", "EUR": "€"}
NO_BREAK = "\u00a0"


def money(minor: int | None, currency: str | None) -> str:
    """Return an amount of minor units for people: 10000 BRL -> `R$ 100.00`."""
    if minor is None or currency not in CURRENCY_EXPONENTS:
        return "?" if minor is None else f"{minor} minor units {currency}"
    exponent = CURRENCY_EXPONENTS[currency]
    whole, part = divmod(minor, 10**exponent)
    text = f"{whole}.{part:0{exponent}d}" if exponent else str(whole)
    return f"{SYMBOLS.get(currency, currency)} {text}"


def unbroken(minor: int | None, currency: str | None) -> str:
    """The same for a page, where a line may not end between sign and amount."""
    return money(minor, currency).replace(" ", NO_BREAK)
