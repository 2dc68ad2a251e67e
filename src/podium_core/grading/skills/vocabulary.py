"""Everyday words and names that tasks are made of."""

WORDS = tuple(
    """anchor apple apricot badger bakery balcony barrel basket beacon bridge bronze butter button cabin
    camera candle canyon carpet castle cellar cheese cherry circle coffee comet copper corner cotton cradle
    desert dinner dragon engine fabric falcon feather fiddle forest fountain garden ginger glacier grape
    hammer harbor helmet hollow island jacket jungle kettle ladder lantern lemon letter lizard magnet maple
    marble meadow mirror monkey needle nettle oyster paddle parrot pebble pencil pepper pillow planet pocket
    potato puzzle rabbit ribbon river saddle sailor salmon school shadow silver singer spider spoon stable
    summer tunnel turtle valley velvet violin walnut window winter wizard yellow zipper""".split()
)
NAMES = (
    "Ada", "Ben", "Carla", "Dmitri", "Elif", "Farid", "Grace", "Hugo", "Ines", "Jonas", "Kemi", "Lena",
    "Marco", "Nadia", "Omar", "Priya",
)  # fmt: skip
GOODS = ("pears", "bolts", "candles", "tickets", "bricks", "stamps", "loaves", "marbles", "seeds", "tiles")
CITIES = ("Oslo", "Lima", "Cairo", "Quito", "Riga", "Hanoi", "Perth", "Turin", "Accra", "Osaka")
COLOURS = ("red", "blue", "green", "amber", "white", "black")
